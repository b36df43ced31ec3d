"""The ledger in the admin: everything to read, nothing to change."""

import secrets
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from credits.models import EntrySource
from credits.services import entries
from tests.credits.allowances import set_allowance
from tests.credits.holding import place_hold
from tests.factories import UserFactory
from tests.staff import log_in_staff
from users.models import User

_MODELS = ["creditaccount", "creditentry", "credithold", "allowance"]


@pytest.fixture
def staff(db: None, client: Client) -> Client:
    """Return a browser of a superuser who has shown a second factor."""
    log_in_staff(client)
    return client


def _live(user: User) -> User:
    entries.grant(user=user, credits=3, source=EntrySource.SURVEYS, key=secrets.token_hex(16))
    place_hold(user=user, credits=3, key=secrets.token_hex(16))
    now = timezone.now()
    set_allowance(user=user, credits=1, starts_at=now, ends_at=now + timedelta(days=30), renews=True)
    entries.adjust(user=user, credits=9, key=secrets.token_hex(16), actor=None, reason="seen in the list")
    return user


@pytest.mark.parametrize("model", _MODELS)
def test_a_row_is_found_by_the_whole_address_or_its_beginning(staff: Client, user: User, model: str) -> None:
    _live(user)
    other = _live(UserFactory.create())
    address = user.profile_address or ""
    for term in (address, address.lower(), f" {address} ", address[:12].upper()):
        page = staff.get(reverse(f"admin:credits_{model}_changelist"), {"q": term}).content.decode()
        assert address in page
        assert str(other.profile_address) not in page
