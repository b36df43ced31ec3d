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
from tests.credits.rows import everything
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


@pytest.mark.parametrize("model", _MODELS)
def test_a_list_asks_the_database_no_more_for_more_rows(
    staff: Client, user: User, model: str, django_assert_max_num_queries: type
) -> None:
    _live(user)
    url = reverse(f"admin:credits_{model}_changelist")
    staff.get(url)
    for _ in range(10):
        _live(UserFactory.create())
    with django_assert_max_num_queries(8):
        page = staff.get(url)
    assert page.context["cl"].result_count >= 11


@pytest.mark.parametrize("model", _MODELS)
def test_rows_are_shown_and_never_added_changed_or_deleted(staff: Client, user: User, model: str) -> None:
    _live(user)
    row = staff.get(reverse(f"admin:credits_{model}_changelist")).context["cl"].result_list[0]
    before = everything()
    change = reverse(f"admin:credits_{model}_change", args=[row.pk])
    shown = staff.get(change)
    assert shown.status_code == 200
    assert b'name="_save"' not in shown.content
    assert staff.post(change, {"balance": 1}).status_code == 403
    assert staff.post(reverse(f"admin:credits_{model}_add"), {}).status_code == 403
    assert (
        staff.post(reverse(f"admin:credits_{model}_delete", args=[row.pk]), {"post": "yes"}).status_code
        == 403
    )
    assert everything() == before
