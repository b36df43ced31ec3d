"""The inbox forgets what no credit hangs on, and a repeat of it still pays nobody."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from credits.models import CreditEntry
from credits.queries import balance_of
from devstack.ad_networks.signing import Reward
from earnings.models import WORTHLESS, Postback, PostbackState
from earnings.services import postbacks
from earnings.services.earnings import forfeit, release_due
from earnings.tasks import purge as nightly
from tests.credits.rows import query
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def _age(days: int = 500) -> None:
    Postback.objects.update(received_at=timezone.now() - timedelta(days=days))


def _everything_told(user: User) -> list[tuple[Network, Reward]]:
    """Let networks tell of everything that there is: credits in all states, reversals of all kinds, and chatter."""
    tapjoy, bitlabs, capped = (
        set_up("tapjoy"),
        set_up("bitlabs", hold_hours=1),
        set_up("adgem", per_event_cap=10),
    )
    other_user = UserFactory.create()
    given, lost, unborn = (tapjoy.reward(user, amount="40") for _ in range(3))
    held, forfeited = (bitlabs.reward(user, amount="70") for _ in range(2))
    refused = capped.reward(user, amount="11")

    def undone(network: Network, reward: Reward, **changes: Any) -> Reward:
        return network.reward(
            user,
            **{"external_id": reward.external_id, "amount": reward.amount, "is_reversal": True, **changes},
        )

    told = [
        (tapjoy, given),
        (tapjoy, lost),
        (tapjoy, undone(tapjoy, lost)),
        (tapjoy, undone(tapjoy, unborn)),
        (tapjoy, undone(tapjoy, given, user=tapjoy.reference(other_user))),
        (tapjoy, tapjoy.reward(user, amount="0")),
        (bitlabs, held),
        (bitlabs, undone(bitlabs, held, amount="30")),
        (bitlabs, forfeited),
        (capped, refused),
        (capped, undone(capped, refused)),
    ]
    for network, reward in told:
        assert network.send(reward).status == 200
    forfeit(postback_id=Postback.objects.get(external_id=forfeited.external_id).pk)
    late = undone(bitlabs, forfeited)
    bitlabs.send(late)
    return [*told, (bitlabs, late), (tapjoy, unborn)]


def test_what_no_credit_hangs_on_is_forgotten_and_nothing_is_paid_twice() -> None:
    user = UserFactory.create()
    told = _everything_told(user)
    _age()
    entries, before = CreditEntry.objects.count(), Postback.objects.count()

    assert postbacks.purge(now=timezone.now()) == 4

    gone = before - Postback.objects.count()
    assert gone == 4
    assert not Postback.objects.filter(kind="INFO").exists()
    kept = Postback.objects.filter(kind="REVERSAL").values_list("state", flat=True)
    assert set(kept) == {PostbackState.REVERSED, PostbackState.RECEIVED}
    for network, reward in [*told, *told]:
        network.send(reward)
    assert CreditEntry.objects.count() == entries
    release_due(now=timezone.now() + timedelta(hours=2))
    assert balance_of(user).available == 40 + 70 - 30


@pytest.mark.parametrize(("days", "is_gone"), [(399, False), (401, True)])
def test_they_are_kept_for_as_long_as_the_setting_says(days: int, is_gone: bool) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    network.send(network.reward(user, amount="0"))
    _age(days)

    nightly()

    assert Postback.objects.exists() is not is_gone


def test_more_than_a_batch_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    for _ in range(5):
        network.send(network.reward(user, amount="0"))
    _age()
    monkeypatch.setattr(postbacks, "_PURGE_BATCH", 2)

    assert postbacks.purge(now=timezone.now()) == 5


def test_the_old_ones_are_found_by_their_index() -> None:
    wanted = Postback.objects.filter(WORTHLESS, received_at__lt=timezone.now())
    query("SET LOCAL enable_seqscan = off")
    query("SET LOCAL enable_bitmapscan = off")

    assert "earnings_postback_worthless" in wanted.order_by("received_at").explain()
