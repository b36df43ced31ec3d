"""No rows of its own. Django sends `post_migrate`, which sets up the roles, only to apps with this module."""
