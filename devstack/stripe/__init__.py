"""
A double of Stripe: one process that speaks Stripe's HTTP and keeps one account.

It knows cards, licensed monthly prices, automatic collection and one API version. It
does not know taxes, coupons, trials, schedules, invoice items, other payment methods or
Connect: their parameters are refused as unknown, never taken and ignored. Declines,
3-D Secure, refunds and disputes come from Stripe's test cards and from the controls.

`server.py` starts it, `controls.py` steers it. Inside, `wire` knows HTTP, `state` keeps
things and time, `billing` decides as Stripe Billing does, `nouns` are the doors under
`/v1`, `events` tells the outside, `control` holds the doors under `/_control`.
"""
