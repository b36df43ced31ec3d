"""The HTTP doors of payments."""
