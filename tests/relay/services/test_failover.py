"""After a fail-over the rows may be older than the nodes' pools: no account nonce is used for a second call."""

from collections.abc import Callable
from contextlib import nullcontext
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable
from relay.errors import RelayersBusy
from relay.models import Relayer, RelayTransaction
from relay.services.fleet import relayers as relay_relayers
from tests.credits.rows import query
from tests.database import tamper
from tests.relay.callers import execute
from tests.relay.chain import Chain, node_away
from tests.relay.conftest import Accept, Settle
from tests.relay.signing import sign_call
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def another_call(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
) -> Callable[[], RelayTransaction]:
    """Return a function that has another user's call accepted."""
    profile = create_profile()
    owner = open_account(profile)

    def accept() -> RelayTransaction:
        call = sign_call(services=services, profile=profile)
        transaction_hash = execute(user=owner, call=call, now=timezone.now())
        return RelayTransaction.objects.get(transaction_hash=transaction_hash)

    return accept


def fail_over(*, losing: RelayTransaction) -> Relayer:
    """Let another server be the primary, which lacks this call; return the relayer as it was before it."""
    relayer = losing.relayer
    tamper("DELETE FROM relay_attempt WHERE relay_transaction_id = %s", losing.pk)
    tamper("DELETE FROM relay_relaytransaction WHERE id = %s", losing.pk)
    tamper("UPDATE relay_relayer SET next_account_nonce = next_account_nonce - 1 WHERE id = %s", relayer.pk)
    # The new primary's number is higher; here the rows' is lower.
    Relayer.objects.update(timeline=0)
    relayer.refresh_from_db()
    return relayer


def test_account_nonces_known_to_the_pool_are_not_used_again(
    accept: Accept,
    another_call: Callable[[], RelayTransaction],
    chain: Chain,
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = accept()
    broadcast_all()
    relayer = fail_over(losing=lost)
    taken = relayer.next_account_nonce

    # Until the nodes were asked, no relayer takes a call.
    with pytest.raises(RelayersBusy):
        another_call()
    with node_away(), pytest.raises(NodeUnavailable):
        track()
    with pytest.raises(RelayersBusy):
        another_call()

    track()
    relayer.refresh_from_db()
    assert (relayer.next_account_nonce, relayer.state) == (taken + 1, "quarantined")
    assert f"the nodes know its account nonces {taken} to {taken}, and no row does" in caplog.text
    # The other relayers lost nothing, and keep working.
    other = another_call()
    assert other.relayer != relayer
    broadcast_all()
    chain.mine()
    assert chain.receipt(lost.transaction_hash) is not None
    assert chain.receipt(other.transaction_hash) is not None


def test_a_fail_over_that_lost_nothing_costs_one_question(
    accept: Accept, another_call: Callable[[], RelayTransaction]
) -> None:
    accept()
    broadcast_all()
    Relayer.objects.update(timeline=0)
    before = list(Relayer.objects.order_by("pk").values_list("next_account_nonce", "is_active"))
    track()
    assert list(Relayer.objects.order_by("pk").values_list("next_account_nonce", "is_active")) == before
    assert another_call().relayer.is_active
    assert query("SELECT DISTINCT timeline FROM relay_relayer") == [(1,)]


def test_a_node_cannot_claim_more_than_may_be_in_flight(
    relayers: list[Relayer], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = get_chain_client()
    claims = dict.fromkeys((row.address for row in relayers), 10**9)
    monkeypatch.setattr(client, "read_pending_nonces", lambda **_: claims)
    relay_relayers.catch_up(relayers=relayers, now=timezone.now())
    for row in Relayer.objects.all():
        assert row.next_account_nonce == row.mined_account_nonce + settings.RELAY_MAX_IN_FLIGHT


def test_calls_lost_in_a_restore_are_listed_with_their_user(
    accept: Accept,
    another_call: Callable[[], RelayTransaction],
    settle: Settle,
    user: User,
) -> None:
    another_call()
    settle()
    assert "explain every account nonce" in printed(fails_with=None)
    lost, kept = accept(), another_call()
    assert settle() == 2
    lost.refresh_from_db()
    fail_over(losing=lost)
    for _ in range(2):
        listed = printed(fails_with=1)
        assert lost.transaction_hash in listed
        assert f"call of {user.profile_address} (user {user.pk}), {lost.real_cost} credits" in listed
        assert kept.transaction_hash not in listed
        # The same once the rows have caught up with the chain.
        track()


def printed(*, fails_with: int | None) -> str:
    """Return what `list_unrecorded` prints; it exits with this status."""
    out = StringIO()
    with pytest.raises(CommandError) if fails_with else nullcontext() as refusal:
        call_command("list_unrecorded", stdout=out)
    assert fails_with is None or (refusal and refusal.value.returncode == fails_with)
    return out.getvalue()
