"""The admin in a real browser."""
