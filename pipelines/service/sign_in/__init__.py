"""The sign-in to version 3: OAuth login, stored tokens, their refresh, and the authorization of requests."""
