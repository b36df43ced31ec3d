"""Packs and purchases in tests."""

import random
import secrets

from payments.models import CreditPack, Purchase
from payments.services import purchases
from payments.services.purchases import Order
from tests.payments.payers import Payer


def new_pack(*, currency: str = "usd", amount: int | None = None, bonus: int | None = None) -> CreditPack:
    """Store a pack that is offered, with a random price and bonus."""
    return CreditPack.objects.create(
        code=f"pack-{secrets.token_hex(4)}",
        currency=currency,
        amount_minor=random.randint(500, 5_000) if amount is None else amount,
        bonus_credits=random.randint(1, 5_000) if bonus is None else bonus,
    )


def order_of(pack: CreditPack) -> Order:
    return Order(pack.amount_minor, pack.currency, pack)


def buy(payer: Payer, what: CreditPack | int, key: str | None = None) -> Purchase:
    """Buy a pack or an amount in US dollars, by default with a new key."""
    order = Order(what, "usd") if isinstance(what, int) else order_of(what)
    return purchases.buy(
        user=payer.user, order=order, key=key or secrets.token_hex(8), now=payer.account.now()
    )
