"""Tests of what the database itself refuses."""
