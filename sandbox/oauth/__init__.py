"""OAuth 2.1: sign-in to version 3 (service.md#oauth)."""
