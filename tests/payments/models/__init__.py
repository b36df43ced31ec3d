"""What the database itself refuses."""
