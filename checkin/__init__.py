"""The daily check-in: drop tables, draws and their effects."""
