"""OAuth 2.1: who may use version 3, and for what."""
