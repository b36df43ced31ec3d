"""GET subscription on the wire."""

import pytest

from tests.payments.api.conftest import upsert
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.relay.api.conftest import Wallet
from tests.relay.api.test_execute import assert_problem

pytestmark = pytest.mark.django_db
PATH = "/api/payments/subscription"


@pytest.mark.parametrize("slash", ["", "/"])
def test_an_active_subscription_reports_costs_period_and_no_action(
    double: DoubleAccount, payer: Payer, wallet: Wallet, slash: str
) -> None:
    upsert(wallet, 2550)
    process_all_events(double)
    row = payer.subscription
    response = wallet.send("get", PATH + slash)
    assert response.status == 200
    assert response.body == {
        "subscriptionId": row.stripe_subscription_id,
        "status": "active",
        "currency": "usd",
        "subscriptionCost": 2550,
        "interval": "month",
        "isInvoiced": False,
        "paidCost": 2550,
        "nextCost": 2550,
        "nextCostAt": response.body["nextCostAt"],
        "currentPeriodEnd": int(row.current_period_end.timestamp()),
        "cancelAtEndOfBillingPeriod": False,
        "openCost": 0,
        "clientSecret": "",
        "declineCode": "",
        "nextStep": "nothing",
        "latestInvoice": "collected",
        "isResting": False,
        "endsAt": None,
        "otherSubscriptions": [],
    }
    assert response.headers["Cache-Control"] == "no-store"


def test_without_a_subscription_there_is_none_to_report(payer: Payer, wallet: Wallet) -> None:
    assert_problem(wallet.send("get", PATH), 404, "no-subscription")
