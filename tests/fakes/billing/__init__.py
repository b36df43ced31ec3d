"""
A Stripe in memory behind the seam of `payments.stripe.client`.

The suite of `tests/payments/stripe` holds it to what the SDK answers. It collects once
per invoice, carries no balance from one invoice to the next and prorates nothing.
"""

from tests.fakes.billing.client import Client
from tests.fakes.billing.levers import Levers

__all__ = ["FakeBilling"]


class FakeBilling(Client, Levers):
    """The client, and the levers of `tests.payments.worlds.World` over the same account."""
