"""A decision and its effect are one: what dies between leaves the truth behind, and the page can be sent again."""

import secrets
import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.test import Client

from gateway.admin.actions import Decision, ReasonedAction
from gateway.common.errors import ServiceUnavailable
from gateway.staff.audit import details_of, sentence_of
from relay.models import Relayer, RelayTransaction
from tests.factories import RelayerFactory
from tests.staff import browser_of, confirm, everything, member, messages_of
from users.models import User

pytestmark = pytest.mark.django_db
Run = Callable[[Relayer, Decision], str | None]
Offer = Callable[..., None]
KILLED = SystemExit("the process is told to end")


@pytest.fixture
def row() -> Relayer:
    return RelayerFactory.create()


@pytest.fixture
def client() -> Client:
    """A browser of operations, before a server whose faults are pages."""
    browser = browser_of(member("operations"))
    browser.raise_request_exception = False
    return browser


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Offer an action named `act` that does `run`."""

    def offered(run: Run, **more: Any) -> None:
        action = ReasonedAction(
            name="act", label="Act", permission="relay.pause_relayer", effect=lambda _: "x", run=run, **more
        )
        monkeypatch.setattr(type(admin.site._registry[Relayer]), "staff_actions", (action,))

    return offered


class Steps:
    """Pauses a relayer, and on its first run ends as prescribed, before the change if `before`."""

    def __init__(self, ends: BaseException | None = None, *, before: bool = False) -> None:
        self.ends, self.before, self.runs = ends, before, 0

    def __call__(self, row: Relayer, decision: Decision) -> str:
        self.runs += 1
        if self.before:
            self._end()
        Relayer.objects.filter(pk=row.pk).update(is_active=False)
        self._end()
        return "It is done."

    def _end(self) -> None:
        if self.ends is not None and self.runs == 1:
            raise self.ends


def log() -> list[str]:
    return [sentence_of(entry) for entry in LogEntry.objects.order_by("pk")]


def is_active(row: Relayer) -> bool:
    return Relayer.objects.get(pk=row.pk).is_active


def send(client: Client, row: Relayer, token: uuid.UUID, reason: str = "because it is due") -> Any:
    return confirm(client, "relay_relayer", "act", row, token=token, reason=reason)


@pytest.mark.parametrize("before", [True, False])
def test_a_crash_leaves_neither_entry_nor_effect_and_the_form_can_be_sent_again(
    client: Client, offer: Offer, row: Relayer, before: bool
) -> None:
    offer(steps := Steps(KILLED, before=before))
    token, rows = uuid.uuid4(), everything()
    with pytest.raises(SystemExit):
        send(client, row, token)
    assert (log(), everything()) == ([], rows)

    assert "It is done." in messages_of(send(client, row, token))
    assert (log(), is_active(row)) == (["act"], False)
    assert "sent before" in messages_of(send(client, row, token))
    assert (log(), steps.runs) == (["act"], 2)


def test_an_internal_error_leaves_neither_entry_nor_effect(
    client: Client, offer: Offer, row: Relayer
) -> None:
    offer(Steps(RuntimeError("a fault")))
    token, rows = uuid.uuid4(), everything()
    assert send(client, row, token).status_code == 500
    assert (log(), everything()) == ([], rows)
    send(client, row, token)
    assert (log(), is_active(row)) == (["act"], False)


def test_a_refusal_is_on_record_with_the_reason_and_without_an_effect(
    client: Client, offer: Offer, row: Relayer
) -> None:
    offer(Steps(ServiceUnavailable("Not now.")))
    token, rows, reason = uuid.uuid4(), everything(), secrets.token_hex(8)
    assert "Not now." in messages_of(send(client, row, token, reason))
    assert (log(), everything()) == (["act refused"], rows)
    details = details_of(LogEntry.objects.get())
    assert (details["reason"], details["changes"]["outcome"][1]) == (reason, "service-unavailable")
    # What was refused has not been done, so the same page may do it.
    assert "It is done." in messages_of(send(client, row, token))
    assert log() == ["act refused", "act"]


@pytest.mark.parametrize("reaches_out", [False, True])
def test_the_outcome_for_a_row_is_logged_only_where_it_happens(
    client: Client, offer: Offer, row: Relayer, reaches_out: bool
) -> None:
    def changes(row: Relayer) -> dict[str, tuple[str, str]]:
        return {"is_active": (str(row.is_active), "False")}

    offer(Steps(ServiceUnavailable("Not now."), before=True), reaches_out=reaches_out, changes=changes)
    token = uuid.uuid4()
    send(client, row, token)
    send(client, row, token)
    *others, done = LogEntry.objects.order_by("pk")
    assert sentence_of(done) == "act"
    assert details_of(done)["changes"]["is_active"] == ["True", "False"]
    assert others
    assert all("is_active" not in details_of(entry)["changes"] for entry in others)


@pytest.mark.parametrize("reaches_out", [False, True])
def test_a_page_decides_about_each_row_once_and_the_next_page_decides_again(
    client: Client, offer: Offer, row: Relayer, reaches_out: bool
) -> None:
    other = RelayerFactory.create()
    offer(steps := Steps(), reaches_out=reaches_out)
    token = uuid.uuid4()
    for chosen in (row, other):
        assert "It is done." in messages_of(send(client, chosen, token))
        assert "sent before" in messages_of(send(client, chosen, token))
    assert steps.runs == 2
    assert "It is done." in messages_of(send(client, row, uuid.uuid4()))
    assert steps.runs == 3


def test_a_decision_is_known_by_its_page_its_action_its_table_and_its_row() -> None:
    number = secrets.randbelow(2**31)
    rows = [Relayer(pk=number), Relayer(pk=number + 1), RelayTransaction(pk=number)]

    def keys(token: uuid.UUID) -> set[str]:
        return {
            Decision(User(), action, "because", {}, token).key(row)
            for action in ("pause", "resume")
            for row in rows
        }

    token = uuid.uuid4()
    assert len(keys(token) | keys(uuid.uuid4())) == 2 * 2 * len(rows)
    assert keys(token) == keys(token)


class TestReachingOut:
    """Stripe or the node is asked: no transaction waits for them, so the log has what was begun."""

    def test_it_is_begun_and_then_done_outside_of_a_transaction(
        self, client: Client, offer: Offer, row: Relayer
    ) -> None:
        seen: list[Any] = []
        depth = len(connection.savepoint_ids)

        def run(row: Relayer, decision: Decision) -> str:
            seen.extend([log(), len(connection.savepoint_ids) - depth])
            return "The node took it."

        offer(run, reaches_out=True)
        reason, token = secrets.token_hex(8), uuid.uuid4()
        assert "The node took it." in messages_of(send(client, row, token, reason))
        assert (seen, log()) == ([["act begun"], 0], ["act begun", "act"])
        begun, done = LogEntry.objects.order_by("pk")
        assert {details_of(entry)["reason"] for entry in (begun, done)} == {reason}
        assert details_of(done)["changes"]["outcome"] == ["", "The node took it."]
        assert "sent before" in messages_of(send(client, row, token))
        assert LogEntry.objects.count() == 2

    @pytest.mark.parametrize("before", [True, False])
    def test_a_crash_leaves_the_begun_decision_and_the_form_can_be_sent_again(
        self, client: Client, offer: Offer, row: Relayer, before: bool
    ) -> None:
        offer(Steps(KILLED, before=before), reaches_out=True)
        token = uuid.uuid4()
        with pytest.raises(SystemExit):
            send(client, row, token)
        assert (log(), is_active(row)) == (["act begun"], before)

        assert "It is done." in messages_of(send(client, row, token))
        assert (log(), is_active(row)) == (["act begun", "act begun", "act"], False)
        assert "sent before" in messages_of(send(client, row, token))

    @pytest.mark.parametrize(
        ("ends", "status", "said"),
        [(ServiceUnavailable("Away."), 200, "act refused"), (RuntimeError("a fault"), 500, "act failed")],
    )
    def test_a_failed_decision_is_reported_and_may_be_sent_again(
        self, client: Client, offer: Offer, row: Relayer, ends: Exception, status: int, said: str
    ) -> None:
        offer(Steps(ends, before=True), reaches_out=True)
        token = uuid.uuid4()
        assert send(client, row, token).status_code == status
        assert (log(), is_active(row)) == (["act begun", said], True)
        send(client, row, token)
        assert (log(), is_active(row)) == (["act begun", said, "act begun", "act"], False)

    @pytest.mark.django_db(transaction=True)
    def test_a_form_sent_again_while_the_first_is_pending_does_nothing(
        self, client: Client, offer: Offer, row: Relayer
    ) -> None:
        begun, answered = threading.Event(), threading.Event()

        def run(row: Relayer, decision: Decision) -> str:
            assert not connection.in_atomic_block
            begun.set()
            assert answered.wait(120)
            return "It is done."

        offer(run, reaches_out=True)
        token, messages = uuid.uuid4(), []

        def first() -> None:
            messages.append(messages_of(send(client, row, token)))
            connection.close()

        thread = threading.Thread(target=first)
        thread.start()
        assert begun.wait(120)
        with transaction.atomic():
            second = messages_of(send(browser_of(member("operations")), row, token))
        answered.set()
        thread.join()
        assert "in progress" in second
        assert "It is done." in messages[0]
        assert log() == ["act begun", "act"]
