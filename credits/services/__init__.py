"""The services that change ledger rows."""
