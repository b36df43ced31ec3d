"""Held credits are posted when they are due, unless they were reversed before."""

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from credits.models import CreditEntry, EntrySource
from credits.queries import balance_of
from credits.services import entries
from earnings.models import Postback, PostbackState
from earnings.services import networks
from earnings.services.earnings import release, release_due
from earnings.tasks import release_earnings
from rewards.models import ExperienceEntry
from tests.earnings.ad_networks import Network, set_up
from tests.factories import UserFactory
from tests.threads import at_once, locked_elsewhere
from users.models import User

HOLD = timedelta(hours=72)


@pytest.fixture
def network(db: None) -> Network:
    """Return a network whose credits wait for three days."""
    return set_up("tapjoy", hold_hours=72)


def _earn(network: Network, amount: str = "120") -> tuple[User, Postback]:
    user = UserFactory.create()
    network.send(network.reward(user, amount=amount))
    return user, Postback.objects.latest("pk")


def test_held_credits_post_nothing_until_they_are_due_to_the_microsecond(network: Network) -> None:
    user, held = _earn(network)
    assert (held.state, held.credits, held.entry) == (PostbackState.HELD, 120, None)
    due = held.received_at + HOLD
    assert held.available_at == due
    assert release_due(now=due - timedelta(microseconds=1)) == 0
    assert not CreditEntry.objects.exists()
    assert not ExperienceEntry.objects.exists()

    assert release_due(now=due) == 1
    assert release_due(now=due) == 0
    assert balance_of(user).available == 120
    assert ExperienceEntry.objects.get().amount == 120
    held.refresh_from_db()
    assert (held.state, held.entry) == (PostbackState.AVAILABLE, CreditEntry.objects.get())


def test_a_credit_that_was_reversed_while_held_is_never_posted(network: Network) -> None:
    user, held = _earn(network)
    network.send(network.reward(user, external_id=held.external_id, amount="120", is_reversal=True))

    assert release_due(now=timezone.now() + 2 * HOLD) == 0
    assert not release(postback_id=held.pk, now=timezone.now() + 2 * HOLD)
    assert not CreditEntry.objects.exists()
    assert set(Postback.objects.values_list("state", flat=True)) == {PostbackState.REVERSED}


def test_a_reversal_after_the_release_takes_back_the_posted_credits(network: Network) -> None:
    user, held = _earn(network)
    release_due(now=timezone.now() + 2 * HOLD)

    network.send(network.reward(user, external_id=held.external_id, amount="120", is_reversal=True))

    assert balance_of(user).available == 0
    assert [entry.amount for entry in CreditEntry.objects.order_by("id")] == [120, -120]


def test_held_credits_of_a_paused_network_wait(network: Network) -> None:
    user, held = _earn(network)
    other_user, taken_back = _earn(network)
    networks.switch(slug="tapjoy", is_enabled=False)

    assert release_due(now=timezone.now() + 2 * HOLD) == 0
    assert not release(postback_id=held.pk, now=timezone.now() + 2 * HOLD)
    assert not CreditEntry.objects.exists()
    assert set(Postback.objects.values_list("state", flat=True)) == {PostbackState.HELD}

    networks.switch(slug="tapjoy", is_enabled=True)
    network.send(
        network.reward(other_user, external_id=taken_back.external_id, amount="120", is_reversal=True)
    )
    assert release_due(now=timezone.now() + 2 * HOLD) == 1
    assert (balance_of(user).available, balance_of(other_user).available) == (120, 0)


def test_a_failing_release_does_not_keep_the_others_back(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    network = set_up("tapjoy", hold_hours=1)
    stuck, broken = _earn(network)
    user, _ = _earn(network)
    # Its key names something else.
    entries.grant(
        user=stuck, credits=1, source=EntrySource.OFFERWALL, key=f"earning:tapjoy:{broken.external_id}"
    )

    assert release_due(now=timezone.now() + HOLD) == 1

    assert (balance_of(stuck).available, balance_of(user).available) == (1, 120)
    broken.refresh_from_db()
    assert broken.state == PostbackState.HELD
    assert f"the release of postback {broken.pk} failed" in caplog.text


def test_a_locked_account_does_not_keep_the_others_back(
    transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    network = set_up("tapjoy", hold_hours=1)
    busy, waiting = _earn(network)
    user, _ = _earn(network)

    with locked_elsewhere(partial(entries.lock_account, user=busy)):
        assert release_due(now=timezone.now() + HOLD) == 1

    assert (balance_of(busy).available, balance_of(user).available) == (0, 120)
    assert f"the release of postback {waiting.pk} failed" in caplog.text
    assert release_due(now=timezone.now() + HOLD) == 1
    assert balance_of(busy).available == 120


def test_a_lost_database_ends_the_sweep(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = set_up("tapjoy", hold_hours=1)
    for _ in range(2):
        _earn(network)

    def lose_the_server(run: Any, sql: str, *rest: Any) -> Any:
        if "FOR NO KEY UPDATE" in sql:
            monkeypatch.setitem(connection.settings_dict, "HOST", str(tmp_path))
            connection.connection.close()
        return run(sql, *rest)

    with connection.execute_wrapper(lose_the_server), pytest.raises(OperationalError):
        release_due(now=timezone.now() + HOLD)

    monkeypatch.undo()
    assert "the release of postback" not in caplog.text
    assert set(Postback.objects.values_list("state", flat=True)) == {PostbackState.HELD}


def test_the_periodic_task_releases_due_earnings(network: Network) -> None:
    user, held = _earn(network)
    release_earnings()
    assert balance_of(user).available == 0
    Postback.objects.filter(pk=held.pk).update(available_at=timezone.now())

    release_earnings()

    assert balance_of(user).available == 120


def test_the_factors_of_the_arrival_count_and_not_those_of_the_release(network: Network) -> None:
    user, _ = _earn(network)
    network.row.rate = 5
    network.row.save()

    release_due(now=timezone.now() + 2 * HOLD)

    assert balance_of(user).available == 120


def test_a_weak_network_always_holds(db: None) -> None:
    network = set_up("cpx-research", hold_hours=5)

    user, held = _earn(network)

    assert held.state == PostbackState.HELD
    assert held.available_at == held.received_at + timedelta(hours=5)
    assert balance_of(user).available == 0


def test_simultaneous_releases_and_a_reversal_leave_nothing(transactional_db: None) -> None:
    network = set_up("tapjoy", hold_hours=1)
    for _ in range(6):
        user, held = _earn(network)
        later = timezone.now() + timedelta(hours=2)
        reversal = network.reward(user, external_id=held.external_id, amount="120", is_reversal=True)

        at_once([partial(release, postback_id=held.pk, now=later)] * 4 + [partial(network.send, reversal)])

        assert balance_of(user).available == 0
        assert sum(entry.amount for entry in CreditEntry.objects.all()) == 0
