"""The audit log of staff: written with reason, changes and request id, and never altered."""

import secrets
from typing import Any

import pytest
from django import forms
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, transaction
from structlog.contextvars import bound_contextvars

from gateway.common import audit
from tests.factories import UserFactory
from users.models import StaffAction, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


def the_entry() -> StaffAction:
    """Return the only entry of the log."""
    found = StaffAction.objects.get()
    assert isinstance(found, StaffAction)
    return found


def test_an_action_is_written_with_who_why_what_and_in_which_request(staff: User) -> None:
    row = UserFactory.create()
    reason, request = secrets.token_hex(4), secrets.token_hex(4)
    with bound_contextvars(request_id=request):
        audit.record(
            actor=staff, row=row, action="close", reason=reason, changes={"is_active": ("True", "False")}
        )
    entry = the_entry()
    assert (entry.user_id, entry.object_id) == (staff.pk, str(row.pk))
    assert entry.details == {
        "action": "close",
        "reason": reason,
        "changes": {"is_active": ["True", "False"]},
        "requestId": request,
    }


def test_entries_of_djangos_own_have_no_details(staff: User) -> None:
    LogEntry.objects.log_actions(staff.pk, [staff], 2, "changed by hand")
    assert the_entry().details == {}


def test_nobody_alters_the_log(staff: User) -> None:
    audit.record(actor=staff, row=staff, action="look")
    attempts: list[Any] = [
        lambda: LogEntry.objects.update(change_message=""),
        lambda: LogEntry.objects.all().delete(),
        lambda: User.objects.filter(pk=staff.pk).delete(),
    ]
    for attempt in attempts:
        with pytest.raises(DatabaseError, match="Cannot update or delete"), transaction.atomic():
            attempt()
    assert the_entry().details["action"] == "look"


class _Form(forms.Form):
    name = forms.CharField(initial="old", required=False)
    limit = forms.IntegerField(initial=3, required=False)
    new_secret = forms.CharField(required=False)


def test_a_change_tells_from_what_to_what_but_no_secret() -> None:
    secret = secrets.token_hex(8)
    form = _Form({"name": "new", "limit": "3", "new_secret": secret})
    assert form.is_valid()
    changes = audit.changes_of(form)
    assert dict(changes) == {"name": ("old", "new"), "new_secret": ("•••", "•••")}
