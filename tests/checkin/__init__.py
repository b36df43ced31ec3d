"""Tests of the daily check-in."""
