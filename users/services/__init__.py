"""Use cases of sign-in: they decide, lock and write."""
