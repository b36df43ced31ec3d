"""`manage.py reconcile_payments` as an operator sees it."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from credits.models import ReconciliationRun
from gateway.common.leases import try_lease
from payments.models import Payout
from tests.fakes.billing import FakeBilling
from tests.payments.payers import Payer
from tests.payments.webhook_events import process_events
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def payer(fake: FakeBilling, user: User, amount: int) -> Payer:
    """A user who has paid; no event of it is processed yet."""
    fake.pass_time(-86_400)
    payer = Payer(fake, user).with_card()
    payer.upsert(amount)
    return payer


def _run(*options: str) -> tuple[str, int]:
    """Return the output, and the exit code."""
    printed = StringIO()
    try:
        call_command("reconcile_payments", *options, stdout=printed)
    except CommandError as error:
        return printed.getvalue() + str(error), error.returncode
    return printed.getvalue(), 0


def test_a_clean_report_counts_the_compared_objects(payer: Payer, fake: FakeBilling) -> None:
    process_events(fake.events, now=fake.now())
    assert _run() == (
        "Compared: 1 customers, 1 subscriptions, 1 invoices, 1 payouts, 1 allowances.\nNo difference.\n",
        0,
    )


def test_an_empty_database_has_nothing_to_compare(fake: FakeBilling) -> None:
    assert _run() == ("Compared: nothing.\nNo difference.\n", 0)


def test_a_difference_is_printed_with_its_ids_and_fails(payer: Payer, fake: FakeBilling) -> None:
    process_events(fake.events, now=fake.now())
    fake.refund(payer.payout.stripe_payment_intent_id)
    printed, code = _run()
    assert code == 1
    line = printed.splitlines()[0]
    assert line.startswith(
        f"clawback-sum: payment={payer.payout.stripe_payment_intent_id} invoice={payer.payout.stripe_invoice_id}: "
        f"have 0 of {payer.payout.credits} credits taken back; "
    )
    assert (
        f"; wanted {payer.payout.amount_minor} refunded, 0 disputed and 0 returned outside of Stripe of "
        in line
    )
    assert printed.endswith("1 differences")


def test_a_repair_pays_out_and_is_clean(payer: Payer, fake: FakeBilling) -> None:
    printed, code = _run()
    assert (code, printed.split(":")[0]) == (1, "payout-missing")
    assert not Payout.objects.exists()
    printed, code = _run("--repair")
    assert (code, "1 repaired" in printed) == (0, True)
    assert payer.balance == payer.payout.credits


def test_the_window_can_be_chosen(payer: Payer) -> None:
    assert _run("--days", "2")[1] == 1
    assert _run("--days", "0")[1] == 0
    assert _run("--minutes", str(3 * 24 * 60))[1] == 0


def test_with_stripe_unreachable_the_command_exits_with_2(payer: Payer, fake: FakeBilling) -> None:
    with fake.away():
        printed, code = _run()
    assert (code, printed.startswith("The comparison did not run: ")) == (2, True)
    assert ReconciliationRun.objects.get().finished_at is None


@pytest.mark.django_db(transaction=True)
def test_the_command_does_not_wait_for_another_run(payer: Payer) -> None:
    with try_lease("reconciliation.stripe") as acquired:
        assert acquired
        ((printed, code),) = at_once([_run])  # type: ignore[misc]
    assert (printed, code) == ("Another reconciliation is in progress.", 2)
    assert not ReconciliationRun.objects.exists()
