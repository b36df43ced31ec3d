"""
`python -m lab chaos`: fault injection under load, and a verifier that uses none of the product's code.

Proxies run in front of PostgreSQL, Redis, the node and the payment provider. Faults are caused by these proxies or by
signals to processes; the service has no failpoints. The verifier compares the service's responses with chain and rows.
"""
