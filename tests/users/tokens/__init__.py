"""Tests of the tokens themselves, without a row."""
