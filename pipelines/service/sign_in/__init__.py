"""OAuth 2.1 and the sign-ins of version 2: registration, login, tokens, their storage and their refresh."""
