"""Tests of the HTTP door of sign-in."""
