"""Everything that changes a ledger row."""
