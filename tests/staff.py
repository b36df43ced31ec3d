"""Staff at a browser, in a role, confirming what they do."""

import re
import uuid
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.models import Group
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.plugins.otp_totp.models import TOTPDevice

from tests.factories import UserFactory
from users.models import User

SUPERUSER = "superuser"


def member(role: str) -> User:
    """Return a new member of staff in a role; `superuser` is one that needs no group."""
    person = UserFactory.create(profile_address=None, is_staff=True, is_superuser=role == SUPERUSER)
    if role != SUPERUSER:
        person.groups.add(Group.objects.get(name=role))
    return person


def browser_of(person: User) -> Client:
    """Return a browser of somebody who has shown a second factor."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[DEVICE_ID_SESSION_KEY] = TOTPDevice.objects.create(user=person).persistent_id
    session.save()
    return client


def address_of(model: str, action: str, *rows: Any) -> str:
    """Return where an action such as `relay_relayer`, `pause` is confirmed for these rows."""
    page = reverse(f"admin:{model}_do", args=[action])
    return f"{page}?{urlencode({'ids': ','.join(str(row.pk) for row in rows)})}" if rows else page


def confirm(client: Client, model: str, action: str, *rows: Any, **answers: Any) -> HttpResponse:
    """Send the confirmation page as a browser would, and return what comes of it."""
    body = {"reason": "because", "token": uuid.uuid4(), **answers}
    return client.post(address_of(model, action, *rows), body, follow=True)  # type: ignore[return-value]


def messages_of(answer: Any) -> str:
    """Return what the page tells first, in one text."""
    return re.sub(r"\s+", " ", " ".join(str(told) for told in answer.context["messages"]))
