"""English, the only language of the staff's pages."""
