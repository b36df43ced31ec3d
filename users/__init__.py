"""Who: sign-in, sessions, tokens, and the pages that read all apps below."""
