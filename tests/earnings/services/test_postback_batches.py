"""Random events give the same rows one at a time and in batches of any size."""

import random
import secrets
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditEntry
from credits.services.reconciliation import find_differences
from earnings.models import AdNetwork, DailyEarnings, Postback
from earnings.networks.push_report import PushReport
from earnings.services import networks
from earnings.services.postbacks import VerifiedEvent, record_all
from rewards.models import BadgeTrack, ExperienceEntry, ModifierType
from rewards.services import experience, modifiers
from tests.credits.allowances import set_allowance
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db
_NOW = timezone.now().replace(hour=12)
_ROWS = 90


def _events(rng: random.Random, network: AdNetwork, users: Sequence[User]) -> Iterator[VerifiedEvent]:
    """Yield rewards and reversals whose few ids meet again: repeated, changed, reversed, or of another user."""
    names = {networks.reference_of(user=user, network=network): user for user in users} | {"0" * 32: None}
    for _ in range(_ROWS):
        name = rng.choice(list(names))
        amount = rng.choice(["1", "40", "90.5", "400", "2500", "0", "-1", "-40", "-90.5", "-400"])
        fields = {"row_id": f"r{rng.randrange(_ROWS // 3)}", "user_reference": name, "amount": amount}
        yield VerifiedEvent(
            network=network,
            event=PushReport().parse(fields),
            user=names[name],
            raw=b"",
            received_at=_NOW,
        )


def _batches(events: Sequence[VerifiedEvent], rng: random.Random) -> Iterator[list[VerifiedEvent]]:
    """Yield random pieces; as in a file, no piece reports an event twice."""
    batch: list[VerifiedEvent] = []
    for verified in events:
        keys = {(other.event.external_id, other.event.kind) for other in batch}
        if batch and ((verified.event.external_id, verified.event.kind) in keys or rng.random() < 0.03):
            yield batch
            batch = []
        batch.append(verified)
    yield batch


def _outcome(batches: Sequence[Sequence[VerifiedEvent]]) -> dict[str, Any]:
    """Return all rows that these batches make, without their ids; nothing of it stays."""
    before = transaction.savepoint()
    new = sum(record_all(batch) for batch in batches)
    assert find_differences() == []
    rows = {"new": new, **{name: list(found) for name, found in _rows().items()}}
    transaction.savepoint_rollback(before)
    return rows


def _rows() -> dict[str, QuerySet[Any, Any]]:
    return {
        "postbacks": Postback.objects.order_by("pk").values_list(
            "external_id",
            "kind",
            "original_id",
            "user",
            "state",
            "refused_because",
            "hold_reason",
            "amount",
            "takes_back",
            "badge_bonus",
            "modifier_bonus",
            "credits",
            "entry__key",
            "available_at",
            "is_conflicting",
            "conflicted_at",
            "payload_hash",
        ),
        "entries": CreditEntry.objects.order_by("account__user", "account_version").values_list(
            "account__user", "amount", "source", "key", "balance_before", "balance_after", "account_version"
        ),
        "experience": ExperienceEntry.objects.order_by("progress__user", "pk").values_list(
            "progress__user", "track", "base", "amount", "total_after", "key", "cause"
        ),
        "days": DailyEarnings.objects.order_by("scope").values_list("day", "scope", "credits"),
    }


@pytest.mark.parametrize("hold_hours", [0, 24])
def test_a_batch_has_the_same_result_as_single_events(hold_hours: int, settings: Settings) -> None:
    rng = random.Random(secrets.randbits(64))
    settings.EARNINGS_DAILY_CEILING = rng.choice([2_000, 9_000, 10**6])
    settings.EARNINGS_NETWORK_SHARE = rng.choice([50, 100])
    users = [UserFactory.create() for _ in range(rng.choice([1, 4, 8]))]
    network = networks.configure(
        slug="push-report", is_enabled=True, rate=Decimal("1.3"), per_event_cap=3_000,
        daily_cap=rng.choice([1_500, 50_000]), hold_hours=hold_hours,
    )  # fmt: skip
    for user in users:
        # Near the next badge, which changes the bonus and the growth of later rows.
        start = rng.choice([500, 950, 4_900])
        experience.gain(user=user, track=BadgeTrack.PERMANENT, base=start, key=f"at:{user.pk}", cause="TEST")
    modifiers.grant(
        user=users[0], modifier_type=ModifierType.BONUS_PUSH_ADS_CREDITS, value=Decimal("0.25"), minutes=60,
        key=secrets.token_hex(8), reason="",
    )  # fmt: skip
    end = _NOW + timedelta(days=9)
    set_allowance(user=users[-1], credits=5, starts_at=_NOW - timedelta(days=9), ends_at=end, renews=False)
    events = list(_events(rng, network, users))

    singly = _outcome([[verified] for verified in events])
    together = _outcome(list(_batches(events, rng)))

    for name, rows in singly.items():
        assert together[name] == rows, name
    assert singly["entries"] or hold_hours


def test_a_batch_takes_as_many_statements_as_a_single_event(django_assert_max_num_queries: Any) -> None:
    network = networks.configure(slug="push-report", is_enabled=True)
    users = [UserFactory.create() for _ in range(40)]
    rng = random.Random(secrets.randbits(64))
    record_all(list(_events_of(network, users[:1], rng)))
    events = list(_events_of(network, users, rng))

    with django_assert_max_num_queries(20):
        assert record_all(events) == len(users)


def _events_of(network: AdNetwork, users: Sequence[User], rng: random.Random) -> Iterator[VerifiedEvent]:
    for user in users:
        name = networks.reference_of(user=user, network=network)
        fields = {"row_id": secrets.token_hex(8), "user_reference": name, "amount": str(rng.randint(1, 99))}
        yield VerifiedEvent(
            network=network, event=PushReport().parse(fields), user=user, raw=b"", received_at=_NOW
        )
