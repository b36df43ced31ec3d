"""Tests of the check-in on the wire."""
