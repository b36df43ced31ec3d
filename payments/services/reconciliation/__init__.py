"""
Comparisons of our rows with Stripe, and of our rows with each other.

Each module yields what it finds and counts what it has looked at. None changes a row, and none asks
Stripe inside a transaction.
"""
