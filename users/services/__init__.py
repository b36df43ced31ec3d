"""Sign-in, sessions and the users of profiles."""
