"""The ad networks: postbacks signed as each network signs them, for demo and tests."""
