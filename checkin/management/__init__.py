"""Commands for operators and staff at a shell."""
