"""Tests of the HTTP API of sign-in."""
