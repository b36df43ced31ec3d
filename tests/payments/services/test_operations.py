"""Billing operations: one at a time, closed once, joined while their key is good, resumed once they are abandoned."""

from datetime import datetime, timedelta

import pytest

from payments.errors import BillingInProgress, BillingRefused, BillingUnavailable
from payments.models import BillingOperation
from payments.services import operations
from tests.fakes.billing import FakeBilling
from users.models import User

pytestmark = pytest.mark.django_db
KIND = BillingOperation.Kind.CREATE_CUSTOMER
MOMENT = timedelta(seconds=1)


@pytest.fixture
def begun(fake: FakeBilling, user: User) -> BillingOperation:
    """Return an operation that a process has begun just now, and then died."""
    parameters = {"address": user.profile_address}
    return operations.begin(user=user, kind=KIND, parameters=parameters, now=fake.now())


def test_a_closed_operation_is_not_closed_again(begun: BillingOperation, fake: FakeBilling) -> None:
    done_at, later = fake.now(), fake.now() + MOMENT
    operations.finish(operation=begun, outcome="cus_1", now=done_at)
    operations.refuse(operation=begun, reason="billing-refused", now=later)
    operations.finish(operation=begun, outcome="cus_2", now=later)
    begun.refresh_from_db()
    assert (begun.status, begun.outcome, begun.finished_at) == ("done", "cus_1", done_at)


def test_a_refused_operation_stays_refused(begun: BillingOperation, fake: FakeBilling) -> None:
    operations.refuse(operation=begun, reason="card-declined", now=fake.now())
    operations.finish(operation=begun, outcome="cus_1", now=fake.now())
    begun.refresh_from_db()
    assert (begun.status, begun.outcome) == ("refused", "card-declined")


def test_an_equal_request_joins_a_pending_operation_for_23_hours_and_not_longer(
    begun: BillingOperation, user: User, fake: FakeBilling
) -> None:
    last = begun.created_at + timedelta(hours=23)
    joined = operations.begin(user=user, kind=KIND, parameters=begun.parameters, now=last)
    assert joined.pk == begun.pk
    with pytest.raises(BillingInProgress):
        operations.begin(user=user, kind=KIND, parameters=begun.parameters, now=last + MOMENT)
    assert BillingOperation.objects.get().outcome == "abandoned"


def _begin_another(operation: BillingOperation, *, now: datetime) -> BillingOperation:
    kind = BillingOperation.Kind.CANCEL_SUBSCRIPTION
    return operations.begin(user=operation.user, kind=kind, parameters={}, now=now)


def test_stripes_refusal_for_a_crashed_process_does_not_fail_the_next_request(
    begun: BillingOperation, fake: FakeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> str:
        raise BillingRefused("Stripe refused the request.", reason="testing")

    later = begun.created_at + operations.ABANDONED_AFTER + MOMENT
    with monkeypatch.context() as patch:
        patch.setattr(fake, "create_customer", refuse)
        with pytest.raises(BillingInProgress):
            _begin_another(begun, now=later)
    begun.refresh_from_db()
    assert (begun.status, begun.outcome) == ("refused", "testing")
    assert _begin_another(begun, now=later).status == "pending"


def test_while_stripe_is_down_nothing_is_finished_and_the_next_request_gets_503(
    begun: BillingOperation, fake: FakeBilling
) -> None:
    later = begun.created_at + operations.ABANDONED_AFTER + MOMENT
    with fake.away(), pytest.raises(BillingUnavailable):
        _begin_another(begun, now=later)
    assert BillingOperation.objects.get().status == "pending"


def test_a_request_continues_if_the_blocking_operation_has_just_ended(
    begun: BillingOperation, fake: FakeBilling, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_or_find = operations._create_or_find
    just_ended = iter([(None, None)] * 20)
    monkeypatch.setattr(
        operations,
        "_create_or_find",
        lambda **arguments: next(just_ended, None) or create_or_find(**arguments),
    )
    joined = operations.begin(user=begun.user, kind=KIND, parameters=begun.parameters, now=fake.now())
    assert joined == begun


def test_the_sweep_does_not_resume_an_operation_of_a_possibly_running_process(
    begun: BillingOperation, fake: FakeBilling
) -> None:
    abandoned_at = begun.created_at + operations.ABANDONED_AFTER
    fake.calls.clear()
    assert operations.resume_abandoned(now=abandoned_at) == 0
    assert not fake.calls
    assert operations.resume_abandoned(now=abandoned_at + MOMENT) == 1
    assert dict(fake.calls) == {"create_customer": 1}
    begun.refresh_from_db()
    assert (begun.status, begun.attempts) == ("done", 1)
