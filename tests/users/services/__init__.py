"""Tests of the use cases of sign-in."""
