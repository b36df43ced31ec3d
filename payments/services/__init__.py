"""The use cases of payments."""
