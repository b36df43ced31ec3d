"""The comparison with Stripe and of the ledger, as they are right now."""

from typing import Any

from credits.models import EntrySource
from credits.services.reconciliation import find_differences
from payments.services import reconciliation
from tests.credits.causes import causeless
from tests.payments.stripe_accounts import StripeAccount

PAYMENTS = (EntrySource.SUBSCRIBED_PAYOUT, EntrySource.CREDIT_PURCHASE, EntrySource.PAYOUT_CLAWBACK)


def findings(account: StripeAccount) -> list[dict[str, Any]]:
    """Compare with Stripe, and return what is found."""
    run = reconciliation.reconcile(now=account.now(), minutes=0)
    assert run is not None
    return list(run.findings)


def assert_no_findings(account: StripeAccount) -> None:
    """Assert that our rows agree with Stripe, and the ledger with itself."""
    assert findings(account) == []
    assert find_differences() == []
    assert causeless(*PAYMENTS) == []
