"""Tests of sign-in, from the text that is signed to the HTTP API."""
