"""Commands for operators at a shell."""
