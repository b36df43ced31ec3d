"""
A double of Stripe: one process that speaks Stripe's HTTP and keeps one account.

`server.py` starts it, `controls.py` steers it. Inside, `wire` knows HTTP, `state` keeps
things and time, `billing` decides as Stripe Billing does, `nouns` are the doors under
`/v1`, `events` tells the outside, `control` holds the doors under `/_control`.
"""
