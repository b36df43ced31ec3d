"""Migrations that no release has: a column, a constraint, an index and a change of data, for a database in use."""
