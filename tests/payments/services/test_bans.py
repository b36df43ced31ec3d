"""A ban stops automatic purchases at once and renewals with the paid period; what was paid stays paid."""

import secrets

import pytest

from credits.services import entries
from payments.models import AutoTopUp, CreditPack, Purchase
from payments.services import bans as ours
from payments.services import top_ups
from payments.services.top_ups import Terms
from tests.payments.buying import new_pack
from tests.payments.payers import Payer
from tests.payments.reconciling import assert_no_findings
from tests.payments.stripe_accounts import DoubleAccount
from tests.payments.webhook_events import process_all_events
from tests.staff import member
from users.services import bans

pytestmark = pytest.mark.django_db
DAY = 86_400


@pytest.fixture
def pack(rates: dict[str, int]) -> CreditPack:
    return new_pack(amount=1_000, bonus=0)


def ban(payer: Payer, double: DoubleAccount) -> None:
    bans.ban(user=payer.user, actor=member("support"), reason="abuse", now=double.now())


def test_nothing_more_is_bought_automatically(double: DoubleAccount, payer: Payer, pack: CreditPack) -> None:
    terms = Terms(1, pack.code, 10**6, "yes")
    top_ups.consent(user=payer.user, terms=terms, now=double.now())
    ban(payer, double)
    assert top_ups.run(now=double.now()) == 0
    assert (Purchase.objects.count(), double.v1.charges.list().data) == (0, [])
    bans.lift(user=payer.user, actor=member("support"), now=double.now())
    # The ban has withdrawn the consent, so lifting it charges nobody.
    assert top_ups.run(now=double.now()) == 0
    assert AutoTopUp.objects.get().withdrawn_at is not None


def test_a_subscription_ends_with_its_paid_period(double: DoubleAccount, running: Payer) -> None:
    paid, balance = len(running.payouts), running.balance
    assert ours.end_renewals(now=double.now()) == 0
    ban(running, double)
    assert ours.end_renewals(now=double.now()) == 1
    assert ours.end_renewals(now=double.now()) == 0
    row = running.user.subscriptions.get()
    assert (row.status, row.cancels_at_period_end) == ("active", True)
    assert (running.balance, double.v1.refunds.list().data) == (balance, [])
    double.pass_time(32 * DAY)
    process_all_events(double)
    row.refresh_from_db()
    assert (row.status, len(running.payouts)) == ("canceled", paid)
    assert_no_findings(double)


def test_after_the_ban_is_lifted_nothing_is_cancelled(double: DoubleAccount, running: Payer) -> None:
    ban(running, double)
    bans.lift(user=running.user, actor=member("support"), now=double.now())
    assert ours.end_renewals(now=double.now()) == 0
    assert not running.user.subscriptions.get().cancels_at_period_end
    assert entries.adjust(
        user=running.user, credits=1, key=secrets.token_hex(8), actor=None, reason="it is open"
    )
