"""The doors of relaying: the service's own paths, and those that LSP-15 wallets know."""
