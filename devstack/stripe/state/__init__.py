"""What the account holds, and its time."""
