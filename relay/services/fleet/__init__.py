"""The relayers, and what the service may lose through them."""
