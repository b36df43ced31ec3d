"""Tests of what the database refuses."""
