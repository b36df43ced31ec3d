"""The daily check-in: drop tables, draws and what they award."""
