"""
The economy against a reference model: random moves of users, the same moves in plain Python, compared after each.

`python -m lab ledger-machine` runs it at length; the test suite runs it briefly.
"""
