"""What an operator does with a service under load, tried on the whole stack: a restore, and an upgrade."""
