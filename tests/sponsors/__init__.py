"""Tests of sponsors."""
