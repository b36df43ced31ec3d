"""The ad networks: postbacks signed as each network signs them, for demo and tests, and a stress test with them."""
