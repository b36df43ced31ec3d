"""The ledger: accounts, entries, holds, and the allowance of a paid period."""
