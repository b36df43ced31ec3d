"""The confirmation page: what it shows, what it refuses, and that it is one decision however often it is sent."""

import html
import secrets
import threading
import uuid
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from gateway.admin import actions
from gateway.admin.actions import Decision
from gateway.staff.audit import details_of
from gateway.staff.models import ApprovalRequest, Pause
from relay.models import Relayer
from tests.factories import RelayerFactory, UserFactory
from tests.staff import address_of, browser_of, confirm, everything, member, messages_of

pytestmark = pytest.mark.django_db
LIST = "admin:relay_relayer_changelist"


def relayers(count: int) -> list[Relayer]:
    return [RelayerFactory.create() for _ in range(count)]


def staff_actions_of(model: type[Relayer]) -> dict[str, Any]:
    model_admin: Any = admin.site._registry[model]
    return {action.name: action for action in model_admin.staff_actions}


@pytest.fixture
def client() -> Client:
    """A browser of operations."""
    return browser_of(member("operations"))


def choose(client: Client, *rows: Any, action: str = "pause", **more: str) -> Any:
    body = {"action": action, "_selected_action": [row.pk for row in rows], **more}
    return client.post(reverse(LIST), body, follow=True)


def test_the_page_shows_each_row_with_its_effect_and_requires_a_reason(client: Client) -> None:
    first, second = relayers(2)
    Relayer.objects.filter(pk=second.pk).update(is_active=False)
    before = everything()
    page = html.unescape(choose(client, first, second).content.decode())
    assert (
        f"{first.address}</strong><br>It takes no new calls. Its 0 transactions in flight continue." in page
    )
    assert f'Unchanged: <span class="anywhere">{second.address}</span>. It does not apply.' in page
    assert '<textarea name="reason"' in page
    assert page.count('<form method="post"') == 1
    assert everything() == before


def test_nothing_to_do_offers_no_button(client: Client) -> None:
    [row] = relayers(1)
    Relayer.objects.update(is_active=False)
    page = client.get(address_of("relay_relayer", "pause", row)).content.decode()
    assert "Nothing to do" in page
    assert 'name="reason"' not in page


def test_several_rows_are_done_with_one_reason_and_an_entry_each(client: Client) -> None:
    rows, reason = relayers(3), secrets.token_hex(8)
    confirm(client, "relay_relayer", "pause", *rows[:2], reason=reason)
    assert list(Relayer.objects.filter(is_active=True)) == [rows[2]]
    entries = LogEntry.objects.order_by("pk")
    assert [entry.object_id for entry in entries] == [str(row.pk) for row in rows[:2]]
    assert {details_of(entry)["reason"] for entry in entries} == {reason}


def test_a_row_named_twice_is_done_once(client: Client) -> None:
    [row] = relayers(1)
    shown = client.get(address_of("relay_relayer", "pause", row, row))
    assert shown.context["effects"] == [(row.address, staff_actions_of(Relayer)["pause"].effect(row))]
    assert "sent before" not in messages_of(confirm(client, "relay_relayer", "pause", row, row))
    assert LogEntry.objects.count() == 1


def test_too_many_rows_are_refused_and_none_is_dropped(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_ROWS", 2)
    rows = relayers(3)
    before = everything()
    for result in (
        choose(client, *rows),
        choose(client, rows[0], select_across="1"),
        client.get(address_of("relay_relayer", "pause", *rows), follow=True),
        confirm(client, "relay_relayer", "pause", *rows),
    ):
        assert "at most 2 rows" in messages_of(result)
    assert everything() == before
    assert not LogEntry.objects.exists()
    confirm(client, "relay_relayer", "pause", *rows[:2])
    assert Relayer.objects.filter(is_active=False).count() == 2


@pytest.mark.parametrize("ids", ["", "0", "nonsense", "1,0"])
def test_rows_that_are_not_there_are_not_found(client: Client, ids: str) -> None:
    relayers(1)
    page = reverse("admin:relay_relayer_do", args=["pause"])
    assert client.post(f"{page}?ids={ids}", {"reason": "x", "token": uuid.uuid4()}).status_code == 404


def test_an_action_that_is_not_there_is_not_found(client: Client) -> None:
    [row] = relayers(1)
    assert client.get(address_of("relay_relayer", "delete", row)).status_code == 404


@pytest.mark.parametrize("reason", ["", "  ", "...", "x", "-- !! --", "typo ..."])
def test_an_invalid_reason_is_refused_and_the_form_keeps_its_input(client: Client, reason: str) -> None:
    [row] = relayers(1)
    before = everything()
    page = confirm(client, "relay_relayer", "pause", row, reason=reason)
    form = page.context["form"]  # type: ignore[attr-defined]
    assert "reason" in form.errors
    assert form["reason"].value() == reason
    assert everything() == before


def test_a_form_refused_by_a_ceiling_keeps_its_input_for_correction(settings: Settings) -> None:
    user, browser = UserFactory.create(), browser_of(member("support"))
    limits = settings.APPROVAL_LIMITS["credits"]
    settings.APPROVAL_LIMITS = {**settings.APPROVAL_LIMITS, "credits": {**limits, "ceiling": 1_000}}
    typed = {"credits": 1_001, "reason": secrets.token_hex(8), "token": uuid.uuid4()}
    page: Any = confirm(browser, "users_user", "adjust_credits", user, **typed)
    assert "At most 1,000 credits at a time, even with approval." in messages_of(page)
    assert {name: page.context["form"][name].value() for name in typed} == {
        name: str(value) for name, value in typed.items()
    }
    assert not ApprovalRequest.objects.exists()
    confirm(browser, "users_user", "adjust_credits", user, **{**typed, "credits": 1_000})
    assert [(request.amount, request.reason) for request in ApprovalRequest.objects.all()] == [
        (1_000, typed["reason"])
    ]


def test_the_requester_gets_a_link_to_the_request() -> None:
    row, browser = (
        RelayerFactory.create(is_active=False, retired_at=timezone.now()),
        browser_of(member("operations")),
    )
    page = confirm(browser, "relay_relayer", "bring_back", row).content.decode()
    request = ApprovalRequest.objects.get()
    link = reverse("admin:gateway_admin_approvalrequest_change", args=[request.pk])
    assert f'<a href="{link}" class="underline">Open request {request.pk}</a>' in page


def test_a_decision_is_about_one_action_on_one_row_of_one_kind(client: Client) -> None:
    row, other = relayers(2)
    actor: Any = member("operations")
    token = uuid.uuid4()

    def key(action: str, row: Any, token: uuid.UUID = token) -> str:
        return Decision(actor=actor, action=action, reason="x", inputs={}, token=token).key(row)

    keys = [
        key("pause", row),
        key("resume", row),
        key("pause", other),
        key("pause", Pause(pk=row.pk)),
        key("pause", row, uuid.uuid4()),
    ]
    assert len(set(keys)) == len(keys)
    assert key("pause", row) == keys[0]


def test_one_token_serves_two_actions_on_one_row(client: Client) -> None:
    [row] = relayers(1)
    token = uuid.uuid4()
    confirm(client, "relay_relayer", "pause", row, token=token)
    confirm(client, "relay_relayer", "resume", row, token=token)
    assert Relayer.objects.get().is_active
    assert LogEntry.objects.count() == 2


def test_a_page_without_its_token_is_not_done(client: Client) -> None:
    [row] = relayers(1)
    before = everything()
    assert confirm(client, "relay_relayer", "pause", row, token="").status_code == 200
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_a_form_sent_twice_concurrently_is_one_decision() -> None:
    person = member("operations")
    browsers, token = [browser_of(person) for _ in range(4)], uuid.uuid4()
    barrier = threading.Barrier(len(browsers))

    def send(browser: Client) -> None:
        barrier.wait()
        confirm(browser, "gateway_admin_pause", "pause_relay", token=token)
        connection.close()

    threads = [threading.Thread(target=send, args=[browser]) for browser in browsers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Pause.objects.count() == 1
    assert LogEntry.objects.count() == 1
