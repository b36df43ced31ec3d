"""
Some hundred people who have used the service for weeks, so that staff have something to look at.

Their lives follow from a seed. Rows are written in bulk, as the services would have
written them at the time: every constraint holds, the ledger adds up, and every draw can
be recomputed. None of them pays: whoever has a payment is known to the payment provider
(`devstack.population.payers`).
"""
