"""
The use cases of payments.

A function that calls Stripe raises `BillingUnavailable` if Stripe is unreachable, and `BillingInProgress` if other
processes keep changing the same rows. Callers can retry after both; nothing is charged twice. A sweep raises
`NothingSucceeded` if every item failed, and `OutOfTime` at the worker's time limit.
"""
