"""The HTTP API of sponsors, for their members."""
