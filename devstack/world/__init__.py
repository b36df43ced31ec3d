"""What stands on the chain: the LUKSO implementations, profiles, and contracts for the tests."""
