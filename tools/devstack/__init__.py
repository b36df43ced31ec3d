"""
The service's environment on one machine: PostgreSQL, Redis, a chain with the real LUKSO contracts, a double of Stripe.

`make run` and the tests share `devstack.services.start_services`. The service does not import this package.
"""
