"""
The use cases of payments.

A function that calls Stripe raises `BillingUnavailable` while Stripe is unreachable, and `BillingInProgress` where
other processes keep changing the same rows; both can be retried, and nothing is charged twice. A sweep raises
`NothingSucceeded` where every item failed, and `OutOfTime` at the worker's time limit.
"""
