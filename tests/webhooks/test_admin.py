"""Endpoints in the admin: made, tried, disabled, with secrets that are shown once, and messages sent again."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.staff import browser_of, confirm, member, messages_of
from tests.webhooks.conftest import ORIGIN, App
from webhooks.models import Endpoint, Message
from webhooks.services import endpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("short_sidebar")]
_SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{44}")
_ADD = reverse("admin:webhooks_endpoint_add")


@pytest.fixture
def staff() -> Client:
    return browser_of(member("operations"))


def fill_in(staff: Client, **values: Any) -> Any:
    form = {"name": "wallet", "url": "https://wallet.example/hooks", "origins": ORIGIN}
    return staff.post(_ADD, {**form, "event_types": ["call.settled"], **values}, follow=True)


def test_the_secret_of_a_new_endpoint_is_shown_once_and_stored_sealed(staff: Client) -> None:
    page = fill_in(staff, origins=f"{ORIGIN.upper()}, {ORIGIN}").content.decode()
    row = Endpoint.objects.get()
    assert (row.origins, row.event_types) == ([ORIGIN], ["call.settled"])
    assert set(_SECRET.findall(page)) == set(endpoints.live_secrets(row))
    change = staff.get(reverse("admin:webhooks_endpoint_change", args=[row.pk])).content.decode()
    assert _SECRET.search(change) is None
    assert row.current_secret not in change
    assert not any(_SECRET.search(entry.change_message) for entry in LogEntry.objects.all())


@pytest.mark.parametrize(
    "values",
    [
        {"url": "http://wallet.example/"},
        {"url": "https://10.0.0.1/"},
        {"url": "https://user:password@wallet.example/"},
        {"url": "wallet"},
        {"origins": "wallet.example"},
        {"origins": f"{ORIGIN}/path"},
        {"event_types": ["webhook.test"]},
    ],
    ids=str,
)
def test_an_endpoint_that_cannot_work_is_refused(staff: Client, values: dict[str, Any]) -> None:
    page = fill_in(staff, **values)
    assert page.context["adminform"].form.errors
    assert not Endpoint.objects.exists()


def test_without_a_key_no_endpoint_is_made(staff: Client, settings: Any) -> None:
    settings.WEBHOOK_SECRET_KEYS = []
    assert "Set WEBHOOK_SECRET_KEYS." in fill_in(staff).content.decode()
    assert not Endpoint.objects.exists()


def test_an_endpoint_is_tried_and_its_secret_replaced(staff: Client, app: App) -> None:
    row = app.endpoint
    assert "is sent within seconds" in messages_of(confirm(staff, "webhooks_endpoint", "send_test", row))
    app.deliver()
    assert app.receiver.requests[0].verified(app.secret)["type"] == "webhook.test"

    result = messages_of(confirm(staff, "webhooks_endpoint", "rotate_secret", row))
    [newer] = _SECRET.findall(result)
    assert f'<code class="once">{newer}</code> <button type="button" class="once" data-copy>' in result
    assert endpoints.live_secrets(app.refreshed()) == [newer, app.secret]
    confirm(staff, "webhooks_endpoint", "retire_secret", app.refreshed())
    assert endpoints.live_secrets(app.refreshed()) == [newer]
    assert not any(newer in entry.change_message for entry in LogEntry.objects.all())


def test_a_disabled_endpoint_gets_nothing_until_it_is_enabled(staff: Client, app: App) -> None:
    test = endpoints.send_test(app.endpoint, now=timezone.now())
    confirm(staff, "webhooks_endpoint", "disable", app.endpoint)
    assert (app.refreshed().disabled_by, app.deliver()) == ("staff", 0)
    result = messages_of(confirm(staff, "webhooks_endpoint", "send_test", app.refreshed()))
    assert "does not apply" in result
    Message.objects.filter(pk=test.pk).update(status="given-up", finished_at=timezone.now())
    assert "disabled" in messages_of(confirm(staff, "webhooks_message", "resend", test))

    confirm(staff, "webhooks_endpoint", "enable", app.refreshed())
    confirm(staff, "webhooks_message", "resend", Message.objects.get())
    assert app.deliver() == 1


def test_support_resends_messages_given_up_since_a_time(app: App) -> None:
    support, now = browser_of(member("support")), timezone.now()
    message = endpoints.send_test(app.endpoint, now=now)
    Message.objects.update(status="given-up", finished_at=now)
    since = {"since_0": f"{now:%Y-%m-%d}", "since_1": "00:00"}
    answer = messages_of(confirm(support, "webhooks_endpoint", "resend_given_up", app.endpoint, **since))
    assert "1 messages are sent again" in answer
    app.deliver()

    result = support.get(reverse("admin:webhooks_message_changelist"), {"q": message.public_id})
    assert list(result.context["cl"].result_list) == [message]
    page = support.get(reverse("admin:webhooks_message_change", args=[message.pk])).content.decode()
    assert message.public_id in page
    assert ">204<" in re.sub(r"\s", "", page)


def test_secrets_are_sealed_again_under_a_new_key(app: App, settings: Any) -> None:
    old, new = settings.WEBHOOK_SECRET_KEYS[0], "k" * 40
    settings.WEBHOOK_SECRET_KEYS = [new, old]
    call_command("seal_webhook_secrets")
    settings.WEBHOOK_SECRET_KEYS = [new]
    assert endpoints.live_secrets(app.refreshed()) == [app.secret]

    settings.WEBHOOK_SECRET_KEYS = [old]
    with pytest.raises(CommandError, match="wallet"):
        call_command("seal_webhook_secrets")
    endpoints.send_test(app.endpoint, now=timezone.now())
    app.deliver()
    assert app.receiver.requests == []
    assert Message.objects.get().deliveries.get().error == "No key decrypts the endpoint's secret."
