"""Relayer rows: registered from the keys of the signer, kept in sync with the chain."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from gateway.chain.errors import NodeUnavailable
from gateway.chain.signing import get_signer
from relay.models import Relayer
from relay.services import relayers as relay_relayers
from tests.relay.chain import Chain, node_away
from tests.relay.conftest import LYX
from tests.threads import at_once


def keys() -> list[str]:
    """Return the relayers' private keys in the order of their addresses."""
    private_keys: list[str] = settings.RELAY_RELAYER_KEYS
    return private_keys


@pytest.mark.django_db
def test_a_new_key_becomes_a_row_that_starts_where_the_chain_is(chain: Chain) -> None:
    for address in get_signer().addresses():
        chain.fund(LYX, address)
    chain.use_key_elsewhere(keys()[0], account_nonce=chain.account_nonce(get_signer().addresses()[0]))
    chain.mine()

    assert relay_relayers.register_new_relayers(now=timezone.now()) == len(keys())
    assert relay_relayers.register_new_relayers(now=timezone.now()) == 0

    for relayer in Relayer.objects.all():
        nonce = chain.account_nonce(relayer.address)
        assert (relayer.next_account_nonce, relayer.mined_account_nonce) == (nonce, nonce)
        assert 0 < relayer.balance_wei <= LYX
    assert Relayer.objects.get(address=get_signer().addresses()[0]).next_account_nonce > 0


@pytest.mark.django_db
def test_a_key_that_was_used_elsewhere_jumps_forward(chain: Chain, relayers: list[Relayer]) -> None:
    used, start = relayers[0], relayers[0].next_account_nonce
    for ahead in range(3):
        chain.use_key_elsewhere(keys()[0], account_nonce=start + ahead)
    chain.mine()

    assert relay_relayers.sync(now=timezone.now()) == 0

    used.refresh_from_db()
    assert (used.next_account_nonce, used.mined_account_nonce) == (start + 3, start + 3)
    assert used.balance_wei < 100 * LYX


@pytest.mark.django_db
def test_account_nonces_that_are_taken_are_not_given_back(chain: Chain, relayers: list[Relayer]) -> None:
    Relayer.objects.filter(pk=relayers[0].pk).update(next_account_nonce=relayers[0].next_account_nonce + 2)
    relay_relayers.sync(now=timezone.now())
    kept = Relayer.objects.get(pk=relayers[0].pk)
    assert (kept.next_account_nonce, kept.in_flight) == (relayers[0].next_account_nonce + 2, 2)


@pytest.mark.django_db
def test_without_a_node_no_relayer_is_registered(chain: Chain) -> None:
    with pytest.raises(NodeUnavailable), node_away():
        relay_relayers.register_new_relayers(now=timezone.now())
    assert Relayer.objects.count() == 0


def test_processes_that_start_together_register_each_key_once(transactional_db: None, chain: Chain) -> None:
    at_once([partial(relay_relayers.register_new_relayers, now=timezone.now())] * 8)
    assert sorted(Relayer.objects.values_list("address", flat=True)) == sorted(get_signer().addresses())


@pytest.mark.django_db(transaction=True)
def test_a_locked_relayer_does_not_keep_others_from_being_updated(
    chain: Chain, relayers: list[Relayer]
) -> None:
    busy, free = relayers[0], relayers[1]
    chain.fund(7 * LYX, busy.address, free.address)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            Relayer.objects.select_for_update(no_key=True).get(pk=busy.pk)
            noting = threads.submit(at_once, [partial(relay_relayers.sync, now=timezone.now())])
            while Relayer.objects.get(pk=free.pk).balance_wei != 7 * LYX:
                assert not noting.done(), "it ended without the free one"
                time.sleep(0.01)
            # The free one is not locked while the busy one is waited for.
            assert Relayer.objects.select_for_update(nowait=True, no_key=True).get(pk=free.pk)
            assert Relayer.objects.get(pk=busy.pk).balance_wei != 7 * LYX
            Relayer.objects.filter(pk=busy.pk).update(next_account_nonce=busy.next_account_nonce + 5)
        noting.result(timeout=60)
    taken = busy.next_account_nonce + 5
    busy.refresh_from_db()
    assert (busy.balance_wei, busy.next_account_nonce) == (7 * LYX, taken)
