"""The door, the look and the rules of the admin."""
