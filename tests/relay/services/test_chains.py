"""Rows of another chain are neither read nor changed."""

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from gateway.chain.client import get_chain_client
from relay.models import Attempt, Relayer, RelayTransaction
from relay.services.fleet import relayers
from relay.services.sending import broadcasting
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Accept
from tests.relay.workers import later, track

pytestmark = pytest.mark.django_db
OTHER_CHAIN = 31_337


def _move_to_another_chain() -> None:
    RelayTransaction.objects.update(chain_id=OTHER_CHAIN)
    Attempt.objects.update(chain_id=OTHER_CHAIN)


def test_a_key_is_registered_and_kept_in_sync_on_each_chain(chain: Chain) -> None:
    registered = relayers.sync(now=timezone.now())
    Relayer.objects.update(chain_id=OTHER_CHAIN, synced_at=None)
    assert relayers.sync(now=timezone.now()) == registered > 0
    elsewhere = Relayer.objects.filter(chain_id=OTHER_CHAIN)
    assert [relayer.synced_at for relayer in elsewhere] == [None] * registered


def test_a_call_of_another_chain_occupies_no_nonce(accept: Accept) -> None:
    first = accept()
    RelayTransaction.objects.update(chain_id=OTHER_CHAIN)
    second = accept()
    assert (second.relay_nonce, second.channel) == (first.relay_nonce, first.channel)


def test_attempts_of_another_chain_are_not_sent(accept: Accept, node: FaultyClient) -> None:
    accept()
    _move_to_another_chain()
    assert broadcasting.broadcast(now=timezone.now()) == 0
    assert broadcasting.sweep(now=later(60)) == 0
    Attempt.objects.update(status="sent", first_sent_at=timezone.now(), sent_at=timezone.now())
    assert broadcasting.resend(now=later(django_settings.RELAY_RESEND_SECONDS + 1)) == 0
    assert node.sent == []


def test_attempts_of_another_chain_are_not_tracked(accept: Accept, chain: Chain) -> None:
    row = accept()
    attempt = row.attempts.get()
    _move_to_another_chain()
    get_chain_client().send_raw_transactions([bytes(attempt.raw)])
    chain.mine(django_settings.CONFIRMATIONS)
    assert track() == 0
    attempt.refresh_from_db()
    assert attempt.block_number is None


def test_a_transaction_hash_is_read_on_the_chain_of_the_process(accept: Accept) -> None:
    transaction_hash = accept().transaction_hash
    assert Attempt.objects.with_hash(transaction_hash.upper().replace("X", "x")).count() == 1
    Attempt.objects.update(chain_id=OTHER_CHAIN)
    assert not Attempt.objects.with_hash(transaction_hash).exists()
