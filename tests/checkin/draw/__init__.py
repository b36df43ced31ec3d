"""Tests of the draw's arithmetic."""
