"""Old postbacks without a credit are deleted, and a repeat of them still pays nothing."""

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
from earnings.tasks import purge as purge_task
from tests.credits.rows import query
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def _age(days: int = 500) -> None:
    Postback.objects.update(received_at=timezone.now() - timedelta(days=days))


def _send_all_kinds(user: User) -> list[tuple[Network, Reward]]:
    """Send credits of all states, reversals of all kinds, and information; return what was sent."""
    tapjoy, bitlabs, capped = (
        set_up("tapjoy"),
        set_up("bitlabs", hold_hours=1),
        set_up("adgem", per_event_cap=10),
    )
    other_user = UserFactory.create()
    credited, reversed_one, missing = (tapjoy.reward(user, amount="40") for _ in range(3))
    held, forfeited = (bitlabs.reward(user, amount="70") for _ in range(2))
    refused = capped.reward(user, amount="11")

    def reversal_of(network: Network, reward: Reward, **changes: Any) -> Reward:
        return network.reward(
            user,
            **{"external_id": reward.external_id, "amount": reward.amount, "is_reversal": True, **changes},
        )

    sent = [
        (tapjoy, credited),
        (tapjoy, reversed_one),
        (tapjoy, reversal_of(tapjoy, reversed_one)),
        (tapjoy, reversal_of(tapjoy, missing)),
        (tapjoy, reversal_of(tapjoy, credited, user=tapjoy.reference(other_user))),
        (tapjoy, tapjoy.reward(user, amount="0")),
        (bitlabs, held),
        (bitlabs, reversal_of(bitlabs, held, amount="30")),
        (bitlabs, forfeited),
        (capped, refused),
        (capped, reversal_of(capped, refused)),
    ]
    for network, reward in sent:
        assert network.send(reward).status == 200
    forfeit(postback_id=Postback.objects.get(external_id=forfeited.external_id).pk)
    late = reversal_of(bitlabs, forfeited)
    bitlabs.send(late)
    return [*sent, (bitlabs, late), (tapjoy, missing)]


def test_old_postbacks_without_a_credit_are_deleted_and_their_repeats_pay_nothing() -> None:
    user = UserFactory.create()
    sent = _send_all_kinds(user)
    _age()
    entries, before = CreditEntry.objects.count(), Postback.objects.count()

    assert postbacks.purge(now=timezone.now()) == 3

    gone = before - Postback.objects.count()
    assert gone == 3
    assert not Postback.objects.filter(kind="INFO").exists()
    kept = Postback.objects.filter(kind="REVERSAL").values_list("state", flat=True)
    assert set(kept) == {PostbackState.REVERSED, PostbackState.RECEIVED}
    for network, reward in [*sent, *sent]:
        network.send(reward)
    assert CreditEntry.objects.count() == entries
    release_due(now=timezone.now() + timedelta(hours=2))
    assert balance_of(user).available == 40 + 70 - 30


@pytest.mark.parametrize(("days", "is_gone"), [(399, False), (401, True)])
def test_postbacks_are_kept_for_the_days_of_the_setting(days: int, is_gone: bool) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    network.send(network.reward(user, amount="0"))
    _age(days)

    purge_task()

    assert Postback.objects.exists() is not is_gone


def test_more_than_one_batch_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    for _ in range(5):
        network.send(network.reward(user, amount="0"))
    _age()
    monkeypatch.setattr(postbacks, "PURGE_BATCH", 2)

    assert postbacks.purge(now=timezone.now()) == 5


def test_the_purge_uses_its_index() -> None:
    old = Postback.objects.filter(WORTHLESS, received_at__lt=timezone.now())
    query("SET LOCAL enable_seqscan = off")
    query("SET LOCAL enable_bitmapscan = off")

    assert "earnings_postback_worthless" in old.order_by("received_at").explain()
