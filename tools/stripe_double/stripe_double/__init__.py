"""
A double of Stripe: one process that serves Stripe's HTTP API for one test-mode account.

It imports nothing of the gateway. `README.md` lists the modelled parts of Stripe and tells how to start, control and
extend it.
"""
