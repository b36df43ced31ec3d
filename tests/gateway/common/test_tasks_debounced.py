"""A debounced task is sent once for many events of a moment; a lost message delays it for seconds only."""

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
    """Return the name of a task that no other test sends."""
    return f"tests.{secrets.token_hex(8)}"


@pytest.fixture
def _long_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make claims last longer than any test takes."""
    monkeypatch.setattr(tasks, "_CLAIM_MILLISECONDS", 600_000)


@pytest.mark.usefixtures("_long_claims")
def test_a_task_is_claimed_once_until_its_claim_is_released(name: str) -> None:
    assert [tasks.claim(name) for _ in range(3)] == [True, False, False]
    tasks.release_claim(name)
    assert [tasks.claim(name) for _ in range(2)] == [True, False]


@pytest.mark.usefixtures("_long_claims")
def test_the_claim_of_one_task_is_not_that_of_another(name: str) -> None:
    assert tasks.claim(name)
    assert tasks.claim(name + ".other")
    tasks.release_claim(name + ".other")
    assert not tasks.claim(name)


def test_a_claim_that_is_not_released_expires(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_CLAIM_MILLISECONDS", 1)
    assert tasks.claim(name)
    time.sleep(0.05)
    assert tasks.claim(name)


def test_a_claim_lasts_for_seconds_and_not_longer(name: str, settings: Settings) -> None:
    assert tasks.claim(name)
    with Redis.from_url(settings.REDIS_URL) as redis:
        (key,) = redis.keys(f"*{name}")
        assert 0 < redis.pttl(key) <= 5_000


@pytest.mark.usefixtures("_long_claims")
def test_of_many_claims_at_once_one_succeeds(name: str) -> None:
    together = threading.Barrier(16)

    def claim() -> bool:
        together.wait()
        return tasks.claim(name)

    with ThreadPoolExecutor(16) as threads:
        answers = [job.result() for job in [threads.submit(claim) for _ in range(16)]]
    assert sorted(answers) == [False] * 15 + [True]


def test_without_redis_nobody_claims_a_task_and_nobody_fails(name: str, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert not tasks.claim(name)
    tasks.release_claim(name)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_long_claims")
def test_a_task_is_sent_only_after_the_commit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
