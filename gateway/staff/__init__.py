"""The admin as staff see it: its login, its look, and where everything is."""
