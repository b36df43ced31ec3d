"""What changes sponsors' rows."""
