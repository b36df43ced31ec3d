"""A preview of the next invoice is kept for the time while Stripe is away, but not for other terms."""

from collections.abc import Callable

import pytest

from payments.errors import BillingUnavailable
from payments.services import standing
from tests.payments.faults import fault_injection, once
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events

pytestmark = pytest.mark.django_db
HOUR = 3_600


def _double_the_amount(_double: DoubleAccount, payer: Payer) -> None:
    payer.upsert(2 * payer.subscription.amount_minor)


def _fail_the_renewal(double: DoubleAccount, payer: Payer) -> None:
    (card,) = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data
    double.decline_from_now(card.id, "insufficient_funds")
    end = payer.subscription.current_period_end
    double.controls.advance_to(int(end.timestamp()) + 2 * HOUR)
    process_all_events(double)
    assert payer.subscription.status == "past_due"


def _be_away() -> None:
    raise BillingUnavailable("Stripe does not respond.", retry_after=5)


@pytest.mark.parametrize("change", [_double_the_amount, _fail_the_renewal])
def test_a_preview_overtaken_by_a_change_is_not_shown(
    double: DoubleAccount, payer: Payer, amount: int, change: Callable[[DoubleAccount, Payer], None]
) -> None:
    payer.upsert(amount)
    process_all_events(double)
    with fault_injection() as client:
        client.after["next_charge"] = once(lambda: change(double, payer))
        assert standing.report(user=payer.user, now=double.now()).next_minor == amount
    with fault_injection() as client:
        client.before["next_charge"] = client.before["retrieve_subscription"] = _be_away
        later = standing.report(user=payer.user, now=double.now())
    assert (later.next_minor, later.previewed_at) == (None, None)
