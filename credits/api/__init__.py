"""The ledger over HTTP: signed roots for everybody, and proofs for the owner of entries."""
