"""English, the only language of the admin."""
