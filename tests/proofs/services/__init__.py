"""Tests of roots, proofs, the audit and erasure."""
