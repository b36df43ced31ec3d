"""Users who check in, and the moment in which they do."""

import random
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from credits.models import EntrySource
from credits.services import entries
from tests.factories import UserFactory
from users.models import User


@pytest.fixture(autouse=True)
def attempts_as_configured() -> Iterator[None]:
    """Take back what a test has raised the operator's bound to."""
    with override_settings(CHECKIN_MAX_DAILY_ATTEMPTS=settings.CHECKIN_MAX_DAILY_ATTEMPTS):
        yield


@pytest.fixture
def now() -> datetime:
    """Return a moment of today, some way from midnight."""
    return timezone.now().astimezone(UTC).replace(hour=random.randint(1, 22), minute=random.randint(0, 59))


@pytest.fixture
def long_ago(now: datetime) -> datetime:
    """Return a moment of a day whose seed is due."""
    return now - timedelta(days=random.randint(3, 12))


@pytest.fixture
def user(db: None) -> User:
    """Return a user without any history."""
    return UserFactory.create()


@pytest.fixture
def proven(db: None) -> User:
    """Return a user who has earned something."""
    return earner()


def earner() -> User:
    """Return a new user who has earned something."""
    owner = UserFactory.create()
    entries.grant(
        user=owner, credits=random.randint(1, 99), source=EntrySource.SURVEYS, key=secrets.token_hex(8)
    )
    return owner
