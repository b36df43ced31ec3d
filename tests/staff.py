"""Staff at a browser, in a role, confirming what they do."""

import re
import secrets
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Group, Permission
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django_otp import DEVICE_ID_SESSION_KEY

from backoffice import sidebar
from gateway.staff.audit import details_of
from gateway.staff.models import ApprovalRequest, Pause
from tests.factories import UserFactory
from users.models import Phone, SignInSession, User

SUPERUSER = "superuser"


def member(role: str) -> User:
    """Return a new member of staff in a role; `superuser` is one that needs no group."""
    person = UserFactory.create(profile_address=None, is_staff=True, is_superuser=role == SUPERUSER)
    if role != SUPERUSER:
        person.groups.add(Group.objects.get(name=role))
    return person


def browser_of(person: User) -> Client:
    """Return a browser of this member of staff, second factor shown."""
    client = Client()
    _log_in(client, person)
    return client


def log_in_staff(client: Client, *permissions: str, is_superuser: bool | None = None) -> User:
    """Log a new member of staff in, second factor shown, with these permissions; without any, a superuser."""
    person = UserFactory.create(
        profile_address=None,
        is_staff=True,
        is_superuser=not permissions if is_superuser is None else is_superuser,
    )
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    _log_in(client, person)
    return person


def session_of(person: User) -> str:
    """Return the key of what a login leaves in the database; logins themselves are tested through the login page."""
    now = int(time.time())
    kept = SessionStore().encode(
        {
            SESSION_KEY: str(person.pk),
            BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
            HASH_SESSION_KEY: person.get_session_auth_hash(),
            DEVICE_ID_SESSION_KEY: Phone.objects.create(user=person).persistent_id,
            "staff_began_at": now,
            "staff_seen_at": now,
        }
    )
    ends = timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE)
    session = Session(session_key=secrets.token_hex(16), session_data=kept, expire_date=ends)
    session.save(force_insert=True)
    return session.session_key


def _log_in(client: Client, person: User) -> None:
    client.cookies[settings.SESSION_COOKIE_NAME] = session_of(person)


def address_of(model: str, action: str, *rows: Any) -> str:
    """Return where an action such as `relay_relayer`, `pause` is confirmed for these rows."""
    page = reverse(f"admin:{model}_do", args=[action])
    return f"{page}?{urlencode({'ids': ','.join(str(row.pk) for row in rows)})}" if rows else page


def confirm(client: Client, model: str, action: str, *rows: Any, **answers: Any) -> HttpResponse:
    """Send the confirmation page as a browser would, and return what comes of it."""
    body = {"reason": "because it is due", "token": uuid.uuid4(), **answers}
    return client.post(address_of(model, action, *rows), body, follow=True)  # type: ignore[return-value]


def messages_of(answer: Any) -> str:
    """Return the messages at the top of the page, in one text."""
    return re.sub(r"\s+", " ", " ".join(map(str, answer.context["messages"])))


def confirmed(client: Client, url: str, body: dict[str, Any]) -> Any:
    """Send a form whose effect is shown first, then what that page holds with a reason, as a browser would."""
    page: Any = client.post(url, body)
    assert (page.status_code, "preview" in page.context) == (200, True)
    sent = {**dict(page.context["sent"]), page.context["confirmed"]: "1"}
    why = {"why-reason": "because it is due", "why-token": page.context["form"]["token"].value()}
    return client.post(url, {**sent, **why}, follow=True)


def saved(client: Client, url: str, body: dict[str, Any], *, role: str) -> str:
    """Send a form that takes approval, have that role approve it, and return what the approver was told."""
    assert "waits for a second person" in messages_of(confirmed(client, url, body))
    return approve(role)


def approve(role: str, *, action: str = "approve") -> str:
    """Have a member of that role decide the newest request, and return the message."""
    request = ApprovalRequest.objects.latest("pk")
    return messages_of(confirm(browser_of(member(role)), "gateway_admin_approvalrequest", action, request))


_OURS = ("credits", "proofs", "rewards", "earnings", "relay", "payments", "checkin", "accounting")


def everything() -> dict[str, Any]:
    """Return all rows of the service but those that a login of staff changes."""
    with connection.cursor() as cursor:
        cursor.execute(_every_row())
        return dict(cursor.fetchall())


@cache
def _every_row() -> str:
    """Return one statement for all tables: who compares rows asks at least twice."""
    models: list[type[Model]] = [model for app in _OURS for model in apps.get_app_config(app).get_models()]
    models += [ApprovalRequest, Pause, SignInSession]
    tables = [model._meta.db_table for model in models]
    one = "SELECT '{0}', array_agg(kept::text ORDER BY kept::text) FROM {0} AS kept"
    return " UNION ALL ".join(one.format(table) for table in tables)


@contextmanager
def short_sidebar() -> Iterator[None]:
    """Leave the links to all lists out of the admin's pages, for who opens many and looks at something else."""
    overview = [{"items": [{"title": "Overview", "link": reverse("admin:index")}]}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sidebar, "sidebar", lambda request: overview)
        yield


@short_sidebar()
def prove(model: str, action: str, *rows: Any, roles: set[str], **answers: Any) -> str:
    """
    Prove that the action wants a reason and one of `roles`, does something, and does it once; return its message.

    The page is sent twice in the end. That other roles are refused is seen for every action in `test_role_matrix`.
    """
    before = everything()
    browsers = {role: browser_of(member(role)) for role in roles}
    for client in browsers.values():
        assert client.get(address_of(model, action, *rows)).status_code == 200
        unexplained = confirm(client, model, action, *rows, **{**answers, "reason": "  "})
        assert "reason" in unexplained.context["form"].errors  # type: ignore[attr-defined]
    assert everything() == before
    assert not LogEntry.objects.filter(change_message__contains=f'"action": "{action}').exists()
    client, once = browsers[min(roles)], {"token": uuid.uuid4(), "reason": secrets.token_hex(8), **answers}
    message = messages_of(confirm(client, model, action, *rows, **once))
    after = everything()
    assert after != before
    again = messages_of(confirm(client, model, action, *rows, **once))
    assert "this page was sent before" in again or "does not apply" in again
    assert everything() == after
    entries = LogEntry.objects.filter(change_message__contains=once["reason"], action_flag=CHANGE)
    # What takes approval is logged when it is asked for, and again when it is carried out.
    written = [details_of(entry)["action"] for entry in entries]
    first = [name for name in written if name == action or name.endswith(" asked")]
    assert len(first) == len(rows or [None])
    return message
