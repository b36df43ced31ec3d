"""
`python -m lab chaos`: faults caused from outside under load, and a verifier that uses none of the code of the product.

Proxies stand in front of PostgreSQL, Redis, the node and the payment provider. A fault is something that they, or
signals to processes, do; the service has no failpoints. What the service has answered is then compared with the chain
and the rows.
"""
