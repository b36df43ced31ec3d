"""The admin as staff meet it: its door, its look, and where everything is found."""
