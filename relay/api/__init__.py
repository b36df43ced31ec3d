"""The API of the relay: its own paths, and those of LSP-15 wallets."""
