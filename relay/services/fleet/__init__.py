"""The relayers, and the limits on the gas that the service may lose."""
