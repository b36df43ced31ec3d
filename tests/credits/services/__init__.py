"""Tests of what changes the ledger."""
