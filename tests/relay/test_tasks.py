"""The doors for Celery: messages name rows, and a node that is away is no crash."""

from collections.abc import Callable

import pytest
from celery import current_app
from django.conf import settings
from pytest_django import DjangoCaptureOnCommitCallbacks

from gateway.chain.errors import NodeUnavailable
from gateway.chain.states import SendKind
from relay import tasks
from relay.models import Attempt, RelayTransaction
from tests.relay.chain import Chain, MeddlingClient, node_away

pytestmark = pytest.mark.django_db


def test_accepting_rings_for_the_relayer_after_the_commit(
    accept: Callable[..., RelayTransaction],
    node: MeddlingClient,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rung: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, *, kwargs, **_: rung.append((name, kwargs)))
    with django_capture_on_commit_callbacks(execute=True):
        row = accept()
        assert rung == []
    assert rung == [("relay.broadcast", {"relayer_id": row.relayer_id})]

    # So does whatever is signed on its account nonce later.
    node.answer_next(SendKind.REFUSED)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.broadcast(relayer_id=row.relayer_id)
    assert rung == [("relay.broadcast", {"relayer_id": row.relayer_id})] * 2


def test_the_tasks_bring_a_call_to_its_end(accept: Callable[..., RelayTransaction], chain: Chain) -> None:
    row = accept()
    # A newer release's message may say more than this one knows.
    tasks.broadcast(relayer_id=row.relayer_id, priority=1)
    assert Attempt.objects.get().status == "sent"
    tasks.sweep()
    chain.mine(settings.CONFIRMATIONS)
    tasks.track()
    row.refresh_from_db()
    assert row.status == "Success"


def test_a_node_that_is_away_is_an_expected_end_of_a_task(accept: Callable[..., RelayTransaction]) -> None:
    row = accept()
    with node_away(), pytest.raises(NodeUnavailable):
        tasks.broadcast(relayer_id=row.relayer_id)
    for task in (tasks.broadcast, tasks.sweep, tasks.track):
        assert NodeUnavailable in task.throws


def test_beat_knows_the_periodic_tasks() -> None:
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert {tasks.track.name, tasks.sweep.name} <= scheduled
