"""How far an account may go below nothing for a relay call."""

import secrets
from collections.abc import Callable

import pytest
from django.utils import timezone

from credits.errors import InsufficientCredits
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from relay.services.submission import execute
from rewards.models import Badge, BadgeTrack
from tests.relay.chain import GWEI, Chain
from tests.relay.conftest import Refused
from tests.relay.workers import broadcast_all
from users.models import User

pytestmark = pytest.mark.django_db
Accept = Callable[..., RelayTransaction]


def may_owe(credits: int) -> None:
    """Let every badge of the permanent ladder owe this much."""
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(acceptable_credit_debt=credits)


def leave(user: User, credits: int) -> None:
    """Correct the balance so that this much is available."""
    change = credits - balance_of(user).available
    entries.adjust(user=user, credits=change, key=secrets.token_hex(8), actor=None, reason="for a test")


def test_a_call_may_be_held_on_debt_up_to_the_limit(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    refused: Refused,
) -> None:
    price = accept().hold.amount
    may_owe(2 * price)
    leave(user, 1)
    accept(channel=1)
    call = new_call(channel=2)
    # Half a hold is left of the debt.
    leave(user, -2 * price + price // 2)
    with refused(InsufficientCredits) as refusal:
        execute(user=user, call=call, now=timezone.now())
    assert refusal.value.members["debtLimit"] == 2 * price

    assert settle() == 2
    assert balance_of(user).held == 0
    assert find_differences() == []


def test_a_dearer_replacement_may_use_the_debt_too(user: User, accept: Accept, chain: Chain) -> None:
    chain.set_base_fee(GWEI)
    row = accept()
    held = row.hold.amount
    leave(user, 0)
    may_owe(100 * held)
    chain.set_base_fee(row.attempts.get().max_fee_per_gas_wei + GWEI)
    broadcast_all()
    row.hold.refresh_from_db()
    assert row.hold.amount > held
    assert balance_of(user).available == held - row.hold.amount
