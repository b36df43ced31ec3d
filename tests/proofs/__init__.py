"""Tests of the proofs over the ledger."""
