"""No models: the module exists because Django sends `post_migrate`, which sets up the roles, only to apps with one."""
