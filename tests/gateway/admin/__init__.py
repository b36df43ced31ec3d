"""The admin kit."""
