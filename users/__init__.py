"""Identity: users, sessions, tokens, sign-in and trusted implementations."""
