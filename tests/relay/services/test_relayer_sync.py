"""Relayer rows: registered from the keys of the signer, kept in sync with the chain."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.conf import settings as project
from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from gateway.chain.client import JsonRpcChainClient, get_chain_client
from gateway.chain.errors import NodeUnavailable
from gateway.chain.signing import get_signer, set_signer
from gateway.chain.types import ChainView
from gateway.staff import approvals
from relay.errors import NoSpareRelayer
from relay.models import Relayer
from relay.services.fleet import relayers as relay_relayers
from tests.relay.chain import Chain
from tests.relay.conftest import LYX
from tests.staff import member
from tests.threads import at_once


def keys() -> list[str]:
    """Return the relayers' private keys in the order of their addresses."""
    private_keys: list[str] = project.RELAY_RELAYER_KEYS
    return private_keys


@pytest.mark.django_db
def test_a_new_key_becomes_a_row_with_the_chains_account_nonce(chain: Chain) -> None:
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
def test_account_nonces_that_are_taken_are_not_given_back(chain: Chain, relayers: list[Relayer]) -> None:
    Relayer.objects.filter(pk=relayers[0].pk).update(next_account_nonce=relayers[0].next_account_nonce + 2)
    relay_relayers.sync(now=timezone.now())
    kept = Relayer.objects.get(pk=relayers[0].pk)
    assert (kept.next_account_nonce, kept.in_flight) == (relayers[0].next_account_nonce + 2, 2)


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


@pytest.mark.django_db
def test_a_key_that_was_used_elsewhere_is_quarantined_until_it_is_resumed(
    chain: Chain, relayers: list[Relayer], caplog: pytest.LogCaptureFixture
) -> None:
    used, other = relayers[0], relayers[1]
    chain.use_key_elsewhere(keys()[0], account_nonce=used.next_account_nonce)
    chain.mine()
    relay_relayers.sync(now=timezone.now())
    assert f"relayer {used.address} is quarantined" in caplog.text
    used.refresh_from_db()
    other.refresh_from_db()
    assert (used.state, other.state) == ("quarantined", "active")

    relay_relayers.sync(now=timezone.now())
    assert Relayer.objects.get(pk=used.pk).state == "quarantined"
    assert relay_relayers.set_active(relayer_id=used.pk, is_active=True)
    assert Relayer.objects.get(pk=used.pk).state == "active"


@pytest.mark.django_db
def test_a_relayer_with_code_is_quarantined_for_as_long_as_it_has_code(
    chain: Chain, relayers: list[Relayer], caplog: pytest.LogCaptureFixture
) -> None:
    delegated, other = relayers[0], relayers[1]
    chain.delegate(delegated.address)
    try:
        for _ in range(2):
            relay_relayers.sync(now=timezone.now())
        assert caplog.text.count(f"relayer {delegated.address} is quarantined: it has code (EIP-7702)") == 1
        delegated.refresh_from_db()
        other.refresh_from_db()
        assert (delegated.state, delegated.has_code) == ("quarantined", True)
        assert (other.state, other.has_code) == ("active", False)

        assert relay_relayers.set_active(relayer_id=delegated.pk, is_active=True)
        relay_relayers.sync(now=timezone.now())
        assert Relayer.objects.get(pk=delegated.pk).state == "quarantined"
    finally:
        chain.delegate(delegated.address, to="")

    relay_relayers.sync(now=timezone.now())
    delegated.refresh_from_db()
    assert (delegated.state, delegated.has_code) == ("quarantined", False)
    assert relay_relayers.set_active(relayer_id=delegated.pk, is_active=True)
    relay_relayers.sync(now=timezone.now())
    assert Relayer.objects.get(pk=delegated.pk).state == "active"


def _claim_ahead(monkeypatch: pytest.MonkeyPatch, *relayers: Relayer, by: int) -> None:
    """Have the node report that these relayers have sent more transactions than we know of."""
    addresses, read_chain = {row.address for row in relayers}, JsonRpcChainClient.read_chain

    def read_ahead(client: JsonRpcChainClient, **arguments: Any) -> ChainView:
        view = read_chain(client, **arguments)
        accounts = {
            address: replace(account, latest_nonce=account.latest_nonce + by * (address in addresses))
            for address, account in view.accounts.items()
        }
        return replace(view, accounts=accounts)

    monkeypatch.setattr(JsonRpcChainClient, "read_chain", read_ahead)


@pytest.mark.django_db
def test_the_only_node_is_not_trusted_when_it_reports_foreign_use_of_most_keys(
    chain: Chain, relayers: list[Relayer], monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    rows = list(Relayer.objects.order_by("pk"))
    with monkeypatch.context() as patch:
        _claim_ahead(patch, *relayers[:2], by=3)
        with pytest.raises(NodeUnavailable, match="2 of 3 relayers' keys were used elsewhere"):
            relay_relayers.sync(now=timezone.now())
        assert list(Relayer.objects.order_by("pk").values_list("synced_at", flat=True)) == [
            row.synced_at for row in rows
        ]
    # It reports the truth again, and sending resumes by itself.
    relay_relayers.sync(now=timezone.now())
    assert {row.state for row in Relayer.objects.all()} == {"active"}
    assert [row.next_account_nonce for row in Relayer.objects.order_by("pk")] == [
        row.next_account_nonce for row in rows
    ]

    _claim_ahead(monkeypatch, *relayers[:2], by=3)
    settings.CHAIN_QUORUM = 2
    relay_relayers.sync(now=timezone.now())
    states = {row.address: row.state for row in Relayer.objects.all()}
    assert [states[row.address] for row in relayers] == ["quarantined", "quarantined", "active"]


@pytest.mark.django_db
def test_account_nonces_taken_during_the_chain_read_cause_no_doubt(
    chain: Chain,
    relayers: list[Relayer],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    stale = list(Relayer.objects.all())
    Relayer.objects.update(next_account_nonce=F("next_account_nonce") + 2)
    _claim_ahead(monkeypatch, *relayers, by=2)
    view = get_chain_client().read_chain(
        transaction_hashes=[], accounts=[row.address for row in stale], confirmations=1
    )
    relay_relayers.update_accounts(relayers=stale, accounts=view.accounts, now=timezone.now())
    assert {(row.state, row.in_flight) for row in Relayer.objects.all()} == {("active", 0)}
    assert "quarantined" not in caplog.text


@pytest.mark.django_db
def test_a_spare_key_is_registered_only_when_it_is_added(chain: Chain, settings: Settings) -> None:
    settings.RELAY_RELAYER_MNEMONIC = "test test test test test test test test test test test junk"
    settings.RELAY_DERIVED_RELAYERS = 2
    set_signer(None)
    asker = member("operations")
    try:
        first, second = get_signer().spare_addresses()
        assert first == "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
        assert relay_relayers.sync(now=timezone.now()) == len(keys())
        requests = [
            relay_relayers.request_relayer(actor=asker, reason="more calls", key=key) for key in ("a", "b")
        ]
        assert [request.payload["address"] for request in requests] == [first, second]
        with pytest.raises(NoSpareRelayer):
            relay_relayers.request_relayer(actor=asker, reason="more calls", key="c")
        assert relay_relayers.sync(now=timezone.now()) == 0
        for request in requests:
            approvals.approve(request_id=request.pk, actor=member("finance"), reason="agreed")
            assert relay_relayers.sync(now=timezone.now()) == 1
        with pytest.raises(NoSpareRelayer):
            relay_relayers.request_relayer(actor=asker, reason="more calls", key="d")
    finally:
        set_signer(None)
    assert Relayer.objects.count() == len(keys()) + 2


@pytest.mark.django_db
def test_a_relayer_retires_once_it_is_paused_and_nothing_of_it_is_in_flight(
    chain: Chain, relayers: list[Relayer]
) -> None:
    row, nonce = relayers[0], relayers[0].next_account_nonce
    now = timezone.now()
    assert not relay_relayers.retire(relayer_id=row.pk, now=now)
    relay_relayers.set_active(relayer_id=row.pk, is_active=False)
    Relayer.objects.filter(pk=row.pk).update(next_account_nonce=nonce + 1)
    assert not relay_relayers.retire(relayer_id=row.pk, now=now)
    assert Relayer.objects.get(pk=row.pk).state == "draining"
    Relayer.objects.filter(pk=row.pk).update(mined_account_nonce=nonce + 1)
    assert relay_relayers.retire(relayer_id=row.pk, now=now)
    assert row.pk not in {relayer.pk for relayer in relay_relayers.in_service(now=now)}
    assert not relay_relayers.set_active(relayer_id=row.pk, is_active=True)
    assert relay_relayers.bring_back(relayer_id=row.pk)
    assert Relayer.objects.get(pk=row.pk).state == "paused"
