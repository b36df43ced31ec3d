"""A held lease keeps other processes out, and a holder that was replaced writes nothing."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from gateway.common import leases
from gateway.common.leases import Lease, LeaseLost, try_lease
from gateway.common.models import Lease as LeaseRow
from gateway.common.tasks import isolated
from relay.models import WorkerLoop
from tests.credits.rows import query
from tests.journeys.waiting import until
from tests.threads import at_once, waits_for_this_transaction

pytestmark = pytest.mark.django_db(transaction=True)


def acquired_elsewhere(name: str) -> bool:
    def attempt() -> bool:
        try:
            with try_lease(name) as acquired:
                return acquired
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt).result()


def expire() -> None:
    """Let every lease have ended a moment ago."""
    query("UPDATE gateway_common_lease SET expires_at = statement_timestamp() - interval '1 ms' RETURNING 1")


def held(*, owner: str = "one", seconds: float = 30) -> Lease:
    lease = Lease("work", owner=owner, seconds=seconds)
    assert lease.take()
    return lease


def taken_over() -> Lease:
    """Return a lease that expired while its holder was stalled, and that another holder has taken."""
    lease = held()
    expire()
    held(owner="two")
    return lease


def test_a_held_lease_is_refused_to_others_and_free_afterwards() -> None:
    name = secrets.token_hex()
    with try_lease(name) as acquired:
        assert acquired
        assert not acquired_elsewhere(name)
        assert acquired_elsewhere(secrets.token_hex())
    assert acquired_elsewhere(name)
    assert not LeaseRow.objects.exists()


def test_a_failure_inside_frees_the_lease() -> None:
    name = secrets.token_hex()
    with pytest.raises(ZeroDivisionError), try_lease(name):
        raise ZeroDivisionError
    assert acquired_elsewhere(name)


def test_every_holder_has_a_number_of_its_own_even_after_a_release() -> None:
    first, second = held(), held()
    second.release()
    third = held(owner="two")
    assert len({first._fence, second._fence, third._fence}) == 3
    # A holder that was replaced can neither renew nor release.
    assert not first.renew()
    first.release()
    assert third.renew()


def test_a_killed_holder_is_replaced_when_its_lease_expires() -> None:
    held()
    other = Lease("work", owner="two", seconds=30)
    assert not other.take()
    LeaseRow.objects.update(expires_at=Now() + timedelta(seconds=0.3))
    until("it has expired", other.take)


def test_the_lease_of_long_work_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    with try_lease("work"):
        first = LeaseRow.objects.get().expires_at
        until("it was renewed", lambda: LeaseRow.objects.get().expires_at > first)


def store_in_a_transaction() -> None:
    with transaction.atomic():
        WorkerLoop.objects.create(name="stale")


@pytest.mark.parametrize(
    "write",
    [
        store_in_a_transaction,
        lambda: WorkerLoop.objects.bulk_create([WorkerLoop(name="stale")]),
        lambda: WorkerLoop.objects.update(name="stale"),
        lambda: WorkerLoop.objects.all().delete(),
    ],
)
def test_a_holder_that_was_replaced_writes_nothing(write: Callable[[], object]) -> None:
    WorkerLoop.objects.create(name="as it was")
    with taken_over().fenced():
        assert WorkerLoop.objects.get().name == "as it was"
        with pytest.raises(LeaseLost), isolated("no error of an item's own"):
            write()
    assert WorkerLoop.objects.get().name == "as it was"
    # Outside the block this thread writes freely.
    write()


def test_a_transaction_that_has_begun_ends_before_another_takes_over() -> None:
    lease, other = held(), Lease("work", owner="two", seconds=30)
    with lease.fenced(), waits_for_this_transaction(other.take) as taking:
        WorkerLoop.objects.create(name="in time")
        # Another session renews the lease meanwhile, and a process that tries to take it does not wait.
        assert at_once([lease.renew, other.take]) == [True, False]
        at_once([expire])
    assert taking.result()
    assert WorkerLoop.objects.get().name == "in time"
