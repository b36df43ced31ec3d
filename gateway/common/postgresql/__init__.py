"""Django's backend for PostgreSQL, with sessions that end when they can no longer serve."""
