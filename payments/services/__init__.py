"""
The use cases of payments.

What asks Stripe raises `BillingUnavailable` while Stripe is unreachable, and `BillingInProgress` where other
processes keep changing the same rows; both may be repeated, and nothing is charged twice. What goes through
many items raises `NothingSucceeded` where each of them met an error, and `OutOfTime` where the worker must stop.
"""
