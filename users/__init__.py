"""Who: identity, sessions, tokens, sign-in and trusted implementations."""
