"""The front page's figures are computed periodically, show their age, and work without the cache."""

import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from backoffice import front_page
from tests.factories import UserFactory
from tests.portal.history_rows import earned

pytestmark = pytest.mark.django_db


def keep_at(settings: Settings, url: str) -> None:
    """Let the cache be there; Django makes its clients anew when it hears of the change."""
    settings.CACHES = {**settings.CACHES, "figures": {**settings.CACHES["figures"], "LOCATION": url}}


@pytest.fixture(autouse=True)
def _remembering(db: None, settings: Settings) -> Iterator[None]:
    """Remember figures for a minute, and nothing of other tests."""
    settings.STAFF_FIGURES_SECONDS = 60
    keep_at(settings, settings.REDIS_URL)
    caches["figures"].delete(front_page._KEY)
    yield
    keep_at(settings, settings.REDIS_URL)
    caches["figures"].delete(front_page._KEY)


def look(staff: Client) -> tuple[str, int, str]:
    """Return the credits outstanding that the front page shows, its statements, and the age it shows."""
    with CaptureQueriesContext(connection) as statements:
        page = staff.get("/admin/").content.decode()
    shown = re.search(r"Credits outstanding</span>\s*<span class=\"value\">([\d,]+)<", page)
    as_of = re.search(r"as of (\d\d:\d\d:\d\d) UTC", page)
    assert shown
    assert as_of
    return shown[1], len(statements), as_of[1]


def test_a_second_read_within_the_cache_time_runs_no_sum_and_shows_its_age(staff: Client) -> None:
    earned(UserFactory.create(), 3)
    total, statements, moment = look(staff)
    earned(UserFactory.create(), 4)
    again, fewer, same = look(staff)
    assert (total, again, same) == ("3", "3", moment)
    assert fewer < statements - 10
    caches["figures"].delete(front_page._KEY)
    assert look(staff)[0] == "7"


def test_the_setting_decides_the_cache_time(settings: Settings) -> None:
    settings.STAFF_FIGURES_SECONDS = random.randint(5, 500)
    front_page.cached_figures(now=timezone.now())
    client: Any = caches["figures"]
    left = client._cache.get_client().ttl(client.make_key(front_page._KEY))
    assert settings.STAFF_FIGURES_SECONDS - 5 < left <= settings.STAFF_FIGURES_SECONDS


def test_nothing_is_cached_if_the_setting_is_zero(staff: Client, settings: Settings) -> None:
    settings.STAFF_FIGURES_SECONDS = 0
    earned(UserFactory.create(), 1)
    first = look(staff)
    earned(UserFactory.create(), 1)
    assert (first[0], look(staff)[0], caches["figures"].get(front_page._KEY)) == ("1", "2", None)


def test_without_the_cache_the_figures_are_computed(staff: Client, settings: Settings) -> None:
    keep_at(settings, "redis://127.0.0.1:1/0")
    earned(UserFactory.create(), 5)
    assert look(staff)[0] == "5"
    earned(UserFactory.create(), 2)
    assert look(staff)[0] == "7"


def test_recalled_figures_are_the_computed_ones() -> None:
    moment = datetime(2026, 3, 7, 17, 4, 9, tzinfo=UTC)
    earned(UserFactory.create(), 3)
    computed = front_page.cached_figures(now=moment)
    earned(UserFactory.create(), 4)
    recalled = front_page.cached_figures(now=moment + timedelta(seconds=9))
    assert computed == recalled
    assert recalled["as_of"] == "17:04:09 UTC"


def test_cached_values_are_plain_text_without_code() -> None:
    front_page.cached_figures(now=timezone.now())
    client: Any = caches["figures"]
    stored = client._cache.get_client().get(client.make_key(front_page._KEY))
    assert json.loads(stored).keys() >= {"relay_cards", "as_of"}
