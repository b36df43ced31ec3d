"""Of many events in a moment, one message tells; what is lost is lost for a moment only."""

import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery import current_app
from django.db import transaction
from pytest_django import Settings
from redis import Redis

from gateway.common import tasks
from gateway.common.tasks import enqueue_once_on_commit


@pytest.fixture
def name() -> str:
    """Return the name of a task that no other test rings for."""
    return f"tests.{secrets.token_hex(8)}"


@pytest.fixture
def _nobody_hurries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bells ring longer than any test takes."""
    monkeypatch.setattr(tasks, "_CLAIM_MILLISECONDS", 600_000)


@pytest.mark.usefixtures("_nobody_hurries")
def test_a_bell_rings_once_until_it_is_answered(name: str) -> None:
    assert [tasks.claim(name) for _ in range(3)] == [True, False, False]
    tasks.release_claim(name)
    assert [tasks.claim(name) for _ in range(2)] == [True, False]


@pytest.mark.usefixtures("_nobody_hurries")
def test_bells_ring_by_themselves(name: str) -> None:
    assert tasks.claim(name)
    assert tasks.claim(name + ".other")
    tasks.release_claim(name + ".other")
    assert not tasks.claim(name)


def test_an_unheard_bell_rings_again_after_a_while(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_CLAIM_MILLISECONDS", 1)
    assert tasks.claim(name)
    time.sleep(0.05)
    assert tasks.claim(name)


def test_an_unheard_bell_is_silent_for_seconds_and_not_longer(name: str, settings: Settings) -> None:
    assert tasks.claim(name)
    with Redis.from_url(settings.REDIS_URL) as redis:
        (key,) = redis.keys(f"*{name}")
        assert 0 < redis.pttl(key) <= 5_000


@pytest.mark.usefixtures("_nobody_hurries")
def test_of_many_at_once_one_is_first(name: str) -> None:
    together = threading.Barrier(16)

    def ring() -> bool:
        together.wait()
        return tasks.claim(name)

    with ThreadPoolExecutor(16) as threads:
        answers = [job.result() for job in [threads.submit(ring) for _ in range(16)]]
    assert sorted(answers) == [False] * 15 + [True]


def test_with_redis_away_nobody_is_first_and_nobody_fails(name: str, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert not tasks.claim(name)
    tasks.release_claim(name)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_nobody_hurries")
def test_only_what_is_committed_rings(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, object]] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, *, kwargs, **_: sent.append((name, kwargs)))
    with transaction.atomic():
        enqueue_once_on_commit(name)
        transaction.set_rollback(True)
    assert sent == []
    with transaction.atomic():
        enqueue_once_on_commit(name)
        assert sent == []
        enqueue_once_on_commit(name)
    with transaction.atomic():
        enqueue_once_on_commit(name)
    assert sent == [(name, {})]
