"""The audit log of staff: written with reason, changes and request id, and never altered."""

import secrets
from typing import Any

import psycopg
import pytest
from django import forms
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, IntegrityError, connection, transaction
from pgtrigger.registry import registered
from structlog.contextvars import bound_contextvars

from gateway.staff import audit
from gateway.staff.models import StaffAction
from tests.database import OWNER
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


def the_entry() -> StaffAction:
    """Return the only entry of the log."""
    entry = StaffAction.objects.get()
    assert isinstance(entry, StaffAction)
    return entry


def test_an_action_is_logged_with_actor_reason_target_and_request_id(staff: User) -> None:
    row = UserFactory.create()
    reason, request = secrets.token_hex(4), secrets.token_hex(4)
    with bound_contextvars(request_id=request):
        audit.record(
            actor=staff, row=row, action="close", reason=reason, changes={"is_active": ("True", "False")}
        )
    entry = the_entry()
    assert (entry.user_id, entry.object_id) == (staff.pk, str(row.pk))
    assert audit.details_of(entry) == {
        "action": "close",
        "reason": reason,
        "changes": {"is_active": ["True", "False"]},
        "requestId": request,
    }


def test_a_reason_that_names_the_logs_index_hides_no_other_refusal(staff: User) -> None:
    """PostgreSQL quotes the row that it refuses, with whatever staff wrote into it."""
    with pytest.raises(IntegrityError, match="user_id"), transaction.atomic():
        audit.record(actor=User(), row=staff, action="look", reason="gateway_admin_staffaction_decision")

    assert not LogEntry.objects.exists()


def test_entries_of_djangos_own_have_no_details(staff: User) -> None:
    LogEntry.objects.log_actions(staff.pk, [staff], 2, "changed by hand")
    assert audit.details_of(the_entry()) == {}


def test_the_log_cannot_be_altered(staff: User) -> None:
    audit.record(actor=staff, row=staff, action="look")
    attempts: list[Any] = [
        lambda: LogEntry.objects.update(change_message=""),
        lambda: LogEntry.objects.all().delete(),
        lambda: User.objects.filter(pk=staff.pk).delete(),
    ]
    for attempt in attempts:
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            attempt()
    assert audit.details_of(the_entry())["action"] == "look"


def test_a_decision_is_written_once(staff: User) -> None:
    decision = secrets.token_hex(8)
    first = audit.record(actor=staff, row=staff, action="first", decision=decision)
    assert first is not None
    # A reason that looks like a decision is none.
    reason = f'"decision": "{decision}"'
    assert audit.record(actor=staff, row=staff, action="again", decision=decision) is None
    assert audit.record(actor=staff, row=staff, action="other", decision=f"{decision}x") is not None
    assert audit.record(actor=staff, row=staff, action="none", reason=reason) is not None
    assert audit.record(actor=staff, row=staff, action="none", reason=reason) is not None
    actions = [audit.details_of(entry)["action"] for entry in LogEntry.objects.order_by("pk")]
    assert actions == ["first", "other", "none", "none"]


def test_the_log_of_a_service_database_cannot_be_truncated(db: None) -> None:
    """Databases named test_… are the exception, so this one is named otherwise."""
    name = f"service_{secrets.token_hex(6)}"
    parameters = {**connection.get_connection_params(), "autocommit": True, "user": OWNER}
    parameters.pop("cursor_factory", None), parameters.pop("context", None)
    triggers = [
        t.compile(model).install_sql for model, t in registered("gateway_admin.StaffAction:never_emptied")
    ]
    with psycopg.connect(**parameters) as outside:
        outside.execute(f"CREATE DATABASE {name}")
        try:
            with psycopg.connect(**{**parameters, "dbname": name}) as service:
                service.execute("CREATE TABLE django_admin_log AS SELECT 1 AS id")
                for sql in triggers:
                    service.execute(sql)
                with pytest.raises(psycopg.Error, match="append-only"):
                    service.execute("TRUNCATE django_admin_log")
                assert service.execute("SELECT count(*) FROM django_admin_log").fetchone() == (1,)
        finally:
            outside.execute(f"DROP DATABASE {name} WITH (FORCE)")


class _Form(forms.Form):
    name = forms.CharField(initial="old", required=False)
    limit = forms.IntegerField(initial=3, required=False)
    key_manager_address = forms.CharField(initial="0x1", required=False)
    monkey = forms.CharField(initial="tamarin", required=False)


def test_a_change_is_logged_with_old_and_new_value() -> None:
    form = _Form({"name": "new", "limit": "3", "key_manager_address": "0x2", "monkey": ""})
    assert form.is_valid()
    assert dict(audit.changes_of(form)) == {
        "name": ("old", "new"),
        "key_manager_address": ("0x1", "0x2"),
        "monkey": ("tamarin", ""),
    }


@pytest.mark.parametrize(
    "name",
    ["new_secret", "secrets", "path_token", "password", "password2", "old_password", "private_key", "key"],
)
def test_a_changed_secret_is_logged_without_its_value(name: str) -> None:
    secret = secrets.token_hex(8)
    form = type("_Secret", (forms.Form,), {name: forms.CharField(initial=secret)})({name: secret[::-1]})
    assert form.is_valid()
    assert dict(audit.changes_of(form)) == {name: ("•••", "•••")}


def test_a_password_field_is_secret_under_any_name() -> None:
    form = type("_Blind", (forms.Form,), {"phrase": forms.CharField(widget=forms.PasswordInput)})(
        {"phrase": "x"}
    )
    assert form.is_valid()
    assert dict(audit.changes_of(form)) == {"phrase": ("•••", "•••")}


class _People(forms.Form):
    owner = forms.ModelChoiceField(User.objects.filter(is_staff=True), required=False)
    members = forms.ModelMultipleChoiceField(User.objects.all(), required=False)


def test_rows_are_named_on_both_sides(staff: User) -> None:
    # No longer among those that may be chosen, and still called by its name.
    before = UserFactory.create()
    form = _People(
        {"owner": staff.pk, "members": [staff.pk, before.pk]},
        initial={"owner": before.pk, "members": [before]},
    )
    assert form.is_valid()
    assert dict(audit.changes_of(form)) == {
        "owner": (str(before), str(staff)),
        "members": (str(before), ", ".join(sorted([str(before), str(staff)]))),
    }
    assert audit.changes_of(form, is_new=True)["owner"] == ("", str(staff))
