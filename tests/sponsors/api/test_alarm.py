"""The alarm of a sponsor over HTTP."""

import random
from typing import Any

import pytest

from sponsors.models import Sponsor
from tests.relay.api.test_execute import assert_problem
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_sponsor

pytestmark = pytest.mark.django_db


def test_managers_set_the_alarm_and_viewers_see_it() -> None:
    sponsor, alarm = make_sponsor(), random.randint(1, 10**9)
    path = f"/api/sponsors/{sponsor.slug}/alarm"
    manager, viewer = member_of(sponsor, "manager"), member_of(sponsor, "viewer")
    assert call(viewer, "get", path).body == {"credits": None}
    assert call(manager, "put", path, credits=alarm).body == {"credits": alarm}
    assert call(viewer, "get", path).body == {"credits": alarm}
    assert_problem(call(viewer, "put", path, credits=1), 403, "permission-denied")
    wrong: list[Any] = [0, -1, "1", 1.5, 2**53]
    for value in wrong:
        assert_problem(call(manager, "put", path, credits=value), 400, "invalid-request")
    assert Sponsor.objects.get().alarm_credits == alarm
    assert call(manager, "put", path, credits=None).body == {"credits": None}
