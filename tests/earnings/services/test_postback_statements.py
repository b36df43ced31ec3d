"""What a postback costs in statements, and that the account is locked before anything is decided."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from credits.services import entries
from rewards.services.experience import open_progress
from tests.earnings.ad_networks import set_up
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def _statements(call: Any) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        assert call().status == 200
    return [query["sql"] for query in captured if not query["sql"].startswith(("SAVEPOINT", "RELEASE"))]


def test_a_credit_takes_fourteen_statements_with_any_history() -> None:
    user, network = UserFactory.create(), set_up("tapjoy", daily_cap=10**6)
    entries.open_account(user_id=user.pk)
    open_progress(user_ids=[user.pk])
    # The first one of a day makes its rows of the ceilings.
    network.send(network.reward(user))
    counts = []
    for _ in range(3):
        reward = network.reward(user)
        counts.append(len(_statements(lambda reward=reward: network.send(reward))))

    assert counts == [14, 14, 14]


def test_the_account_is_locked_right_after_the_event_is_stored() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    entries.open_account(user_id=user.pk)
    reward = network.reward(user)

    statements = _statements(lambda: network.send(reward))

    (stored,) = [at for at, sql in enumerate(statements) if "INSERT INTO earnings_postback" in sql]
    assert 'FROM "credits_account"' in statements[stored + 1]
    assert statements[stored + 1].endswith("FOR NO KEY UPDATE")


def test_a_repeat_takes_four_statements() -> None:
    user, network = UserFactory.create(), set_up("tapjoy")
    reward = network.reward(user)
    network.send(reward)

    assert len(_statements(lambda: network.send(reward))) == 4
