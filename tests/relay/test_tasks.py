"""The Celery tasks: one task per moment, and a node that is away is no crash."""

import secrets
from collections.abc import Callable, Iterator

import pytest
from celery import current_app
from django.conf import settings
from pytest_django import DjangoCaptureOnCommitCallbacks

from gateway.chain.errors import NodeUnavailable
from gateway.chain.types import SendKind
from gateway.common import tasks as gateway_common_tasks
from relay import tasks as relay_tasks
from relay.models import Attempt, RelayTransaction
from tests.relay.chain import Chain, FaultyClient, node_away

pytestmark = pytest.mark.django_db


@pytest.fixture
def tasks_sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, dict[str, object]]]]:
    """The tasks sent from here on; a task is enqueued once until a worker starts it."""
    monkeypatch.setattr(gateway_common_tasks, "_CLAIM_MILLISECONDS", 600_000)
    gateway_common_tasks.release_claim("relay.broadcast")
    sent: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, *, kwargs, **_: sent.append((name, kwargs)))
    yield sent
    gateway_common_tasks.release_claim("relay.broadcast")


def test_accepting_enqueues_the_task_after_the_commit_and_once_until_a_worker_claims_it(
    accept: Callable[..., RelayTransaction],
    node: FaultyClient,
    tasks_sent: list[tuple[str, dict[str, object]]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        row = accept()
        assert tasks_sent == []
    assert tasks_sent == [("relay.broadcast", {})]
    with django_capture_on_commit_callbacks(execute=True):
        accept(channel=secrets.randbits(120))
    assert tasks_sent == [("relay.broadcast", {})]

    # What is signed on its account nonce later is enqueued again, because the worker cleared the debounce first.
    node.answer_next(SendKind.REFUSED)
    with django_capture_on_commit_callbacks(execute=True):
        relay_tasks.broadcast()
    assert tasks_sent == [("relay.broadcast", {})] * 2
    assert len(node.sent) == 1
    assert row.attempts.count() == 2


def test_what_is_committed_after_the_claim_was_released_is_enqueued_again(
    accept: Callable[..., RelayTransaction],
    node: FaultyClient,
    tasks_sent: list[tuple[str, dict[str, object]]],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        accept()
    late: list[RelayTransaction] = []

    def accept_late() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            late.append(accept(channel=secrets.randbits(120)))

    # The rows are read by now: this message has missed the call.
    node.meanwhile("head", accept_late)
    relay_tasks.broadcast()
    assert len(node.sent) == 1
    assert tasks_sent == [("relay.broadcast", {})] * 2
    relay_tasks.broadcast()
    assert late[0].attempts.get().status == "sent"


def test_the_tasks_bring_a_call_to_its_end(accept: Callable[..., RelayTransaction], chain: Chain) -> None:
    row = accept()
    # A message of an older or newer release may say more than this one asks for.
    relay_tasks.broadcast(relayer_id=row.relayer_id)
    assert Attempt.objects.get().status == "sent"
    relay_tasks.sweep()
    chain.mine(settings.CONFIRMATIONS)
    relay_tasks.track()
    row.refresh_from_db()
    assert row.status == "Success"


def test_a_node_that_is_away_is_an_expected_end_of_a_task(accept: Callable[..., RelayTransaction]) -> None:
    accept()
    with node_away(), pytest.raises(NodeUnavailable):
        relay_tasks.broadcast()
    for task in (relay_tasks.broadcast, relay_tasks.sweep, relay_tasks.track):
        assert NodeUnavailable in task.throws
