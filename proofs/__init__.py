"""Proofs over the ledger: signed roots of its entries, exports, the audit, and the erasure of a person."""
