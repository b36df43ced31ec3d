"""
The outside world on one machine: PostgreSQL, Redis, a chain with the real LUKSO contracts, a double of Stripe.

`make run` and the test-suite stand on the same `devstack.services.start_services`.
Nothing in the service imports this package.
"""
