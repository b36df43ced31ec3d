"""Django's backend for PostgreSQL, which ends sessions that have become unusable."""
