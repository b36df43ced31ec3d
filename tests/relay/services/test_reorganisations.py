"""Reorganisations: blocks that are taken back."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from gateway.chain.client import get_chain_client
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from relay.services.sending import broadcasting
from tests.relay.callers import execute
from tests.relay.chain import Chain
from tests.relay.conftest import Accept
from tests.relay.signing import execute_payload
from tests.relay.workers import broadcast_all, later, track
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_mined_attempt_becomes_pending_and_is_mined_again(user: User, accept: Accept, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    chain.mine()
    track()
    assert row.attempts.get().status == "mined"
    assert row.attempts.get().mined_at is not None

    chain.reorganise(1)
    assert track() == 0
    row.refresh_from_db()
    attempt = row.attempts.get()
    assert (row.status, attempt.status, attempt.block_number, attempt.block_hash) == (
        "Submitted",
        "sent",
        None,
        "",
    )
    assert (attempt.succeeded, attempt.gas_used, attempt.effective_gas_price_wei) == (None, None, None)
    assert attempt.mined_at is None
    row.relayer.refresh_from_db()
    assert row.relayer.in_flight == 1

    assert broadcasting.resend(now=later(settings.RELAY_RESEND_SECONDS + 1)) == 1
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, balance_of(user).held) == ("Success", 0)
    assert CreditEntry.objects.filter(source="RELAY_TRANSACTION").count() == 1
    assert find_differences() == []


def test_confirmations_are_counted_from_the_new_block(accept: Accept, chain: Chain) -> None:
    row = accept()
    broadcast_all()
    chain.mine()
    track()
    old = row.attempts.get()
    # Out of one block and into another between two ticks.
    chain.reorganise(1)
    get_chain_client().send_raw_transactions([bytes(old.raw)])
    chain.mine()
    assert track() == 0
    new = row.attempts.get()
    assert (new.status, new.block_number) == ("mined", (old.block_number or 0) + 1)
    assert new.block_hash != old.block_hash


def test_a_reorganised_revert_admits_followers_again(
    services: Services,
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    chain: Chain,
    settle: Callable[[], int],
) -> None:
    flaky = services.world.deploy_flaky()
    row = accept(payload=execute_payload(flaky.address))
    flaky.flip()
    broadcast_all()
    chain.mine()
    track()
    row.refresh_from_db()
    assert row.terminal_status == "Failed"

    chain.reorganise(1)
    flaky.flip()
    track()
    row.refresh_from_db()
    assert (row.status, row.terminal_status) == ("Submitted", "")
    execute(user=user, call=new_call(ahead=1), now=timezone.now())

    broadcasting.resend(now=later(settings.RELAY_RESEND_SECONDS + 1))
    assert settle() == 2
    assert set(RelayTransaction.objects.values_list("status", flat=True)) == {"Success"}
