"""
A double of Stripe: one process that speaks Stripe's HTTP API and keeps one test-mode account.

It imports nothing of the gateway and nothing else of the dev stack. `README.md` says what of
Stripe it models, how to start and control it, and how to add to it.
"""
