"""The use cases of relaying."""
