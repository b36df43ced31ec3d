"""Tests of the API of sponsors."""
