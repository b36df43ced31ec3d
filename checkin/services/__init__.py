"""What checks in, keeps seeds and publishes tables."""
