"""Of several workers one runs a loop; another takes over when its lease ends. The database's clock decides."""

from functools import partial

import pytest
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from pytest_django import DjangoAssertNumQueries

from gateway.common.models import Lease
from relay.models import WorkerLoop
from relay.services.sending import loops
from relay.services.sending.loops import LoopLease, last_runs
from relay.services.sending.notifications import Listener
from tests.credits.rows import query
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def lease(owner: str, loop: str = "tracking") -> LoopLease:
    return LoopLease(loop=loop, owner=owner)


def expire() -> None:
    """Let every lease have ended a moment ago."""
    query("UPDATE gateway_common_lease SET expires_at = statement_timestamp() - interval '1 ms'")


def test_one_worker_holds_a_lease_until_it_expires_and_then_another() -> None:
    first, second = lease("one@host"), lease("two@host")
    assert first.hold()
    assert not second.hold()
    assert lease("two@host", "broadcasting").hold()

    expire()
    assert second.hold()
    # The first finds out at its next renewal.
    assert lease("one@host").hold() is False
    assert Lease.objects.get(name__endswith="tracking").owner == "two@host"


def test_a_lease_lasts_longer_than_it_takes_to_be_renewed_twice() -> None:
    assert lease("one@host").hold()
    ((left,),) = query(
        "SELECT extract(epoch FROM expires_at - statement_timestamp()) FROM gateway_common_lease"
    )
    assert 2 * loops.RENEWED_AFTER_SECONDS < left <= loops._LEASE_SECONDS


def test_a_released_lease_is_free_at_once_and_only_the_holder_can_release_it() -> None:
    first, second = lease("one@host"), lease("two@host")
    assert first.hold()
    assert lease("one@host", "broadcasting").hold()
    second.release()
    assert not second.hold()
    first.release()
    assert second.hold()
    assert not lease("two@host", "broadcasting").hold()


def test_a_killed_worker_resumes_at_once_after_its_restart() -> None:
    assert lease("one@host").hold()
    assert lease("one@host").hold()


@pytest.mark.django_db(transaction=True)
def test_of_many_concurrent_workers_one_gets_the_lease() -> None:
    workers = [lease(f"{number}@host") for number in range(8)]
    assert at_once([worker.hold for worker in workers]).count(True) == 1
    expire()
    # The first believes that it still holds it until its next renewal.
    assert 1 <= at_once([worker.hold for worker in workers]).count(True) <= 2
    assert Lease.objects.filter(expires_at__gt=Now()).count() == 1


def test_between_renewals_a_lease_costs_no_statement(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    held = lease("one@host")
    with django_assert_num_queries(2):
        assert held.hold()
    with django_assert_num_queries(0):
        assert held.hold()


def test_the_last_end_and_the_last_success_of_a_loop_are_stored_with_the_renewal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "RENEWED_AFTER_SECONDS", 0)
    held = lease("one@host")
    assert held.hold()
    assert [(run.ended_at, run.succeeded_at) for run in last_runs()] == [(None, None)]

    held.note(succeeded=True)
    assert held.hold()
    (first,) = last_runs()
    assert first.ended_at == first.succeeded_at is not None

    held.note(succeeded=False)
    assert held.hold()
    (second,) = last_runs()
    assert second.ended_at is not None
    assert first.ended_at is not None
    assert second.ended_at > first.ended_at
    assert second.succeeded_at == first.succeeded_at

    # Another worker that takes over has done nothing yet.
    expire()
    assert lease("two@host").hold()
    assert last_runs() == [second]


def test_loops_of_another_chain_are_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lease("one@host").hold()
    WorkerLoop.objects.update(chain_id=settings.CHAIN_ID + 1)
    Lease.objects.update(name=f"relay.{settings.CHAIN_ID + 1}.tracking")
    assert last_runs() == []
    assert lease("two@host").hold()


@pytest.mark.django_db(transaction=True)
def test_a_notification_arrives_with_the_commit_also_in_replaced_sessions() -> None:
    signed = Listener(loops.SIGNED_CHANNEL)
    assert not signed.wait(seconds=0)
    at_once([loops.notify_signed])
    assert signed.wait(seconds=60)
    assert not signed.wait(seconds=0)

    # What comes while the session does other work is kept.
    at_once([loops.notify_signed])
    query("SELECT 1")
    assert signed.wait(seconds=0)

    connection.close()
    assert not signed.wait(seconds=0)
    at_once([partial(loops.notify_signed)] * 3)
    assert signed.wait(seconds=60)
