"""Fixtures of automatic top-up whose threshold is always crossed."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from payments.models import AutoTopUp, CreditPack
from payments.services import top_ups
from payments.services.top_ups import COOLDOWN, Terms
from tests.payments.buying import new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount

PRICE, _ALWAYS = 1_000, 10**9
AGAIN = COOLDOWN + timedelta(seconds=1)
Consent = Callable[..., AutoTopUp]


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack(amount=PRICE, bonus=0)


@pytest.fixture
def consent(double: DoubleAccount, payer: Payer, pack: CreditPack) -> Consent:
    """Return a function that turns top-up on, by default whenever it may."""

    def give(*, by: Payer = payer, of: CreditPack = pack, limit: int = 10**6) -> AutoTopUp:
        terms = Terms(1, of.code, limit, "Buy this pack.")
        given = top_ups.consent(user=by.user, terms=terms, now=double.now())
        # Stands for a balance that was used up: a consent to more than the pack gives is refused.
        AutoTopUp.objects.filter(pk=given.pk).update(threshold=_ALWAYS)
        given.refresh_from_db()
        return given

    return give


def run(double: DoubleAccount, *, after: timedelta = timedelta(0)) -> int:
    return top_ups.run(now=double.now() + after)
