"""Whoever has the application's role can post an entry that fits the account; the next comparison finds it."""

import random
import secrets
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from credits.models import CreditAccount, CreditEntry, EntrySource
from credits.services import adjustments, causes, holds
from credits.services.entries import open_account
from gateway.staff.models import ApprovalRequest
from tests.credits.holding import capture, place_hold
from tests.database import tamper
from tests.factories import UserFactory, make
from tests.staff import member
from users.models import User

pytestmark = pytest.mark.django_db
_POST = """
    WITH posted AS (
        INSERT INTO credits_entry
            (account_id, amount, source, key, balance_before, balance_after, account_version, reason)
        SELECT id, %(credits)s, %(source)s, %(key)s, balance, balance + %(credits)s, version + 1, 'forged'
        FROM credits_account WHERE id = %(account)s RETURNING *
    )
    UPDATE credits_account AS account SET balance = balance_after, version = account_version
    FROM posted WHERE account.id = account_id
"""
# Keys as each source has them; "{entry}" and "{hold}" are of an honest charge of the same account.
_KEYS = {
    EntrySource.SUBSCRIBED_PAYOUT: "stripe:invoice:in_{random}",
    EntrySource.CREDIT_PURCHASE: "stripe:invoice:in_{random}",
    EntrySource.PUSH_ADS: "earning:visit-link:{random}",
    EntrySource.VIDEO_ADS: "earning:admob:{random}",
    EntrySource.OFFERWALL: "earning:tapjoy:{random}",
    EntrySource.SURVEYS: "earning:bitlabs:{random}",
    EntrySource.CHECK_IN: "check-in:{number}",
    EntrySource.CREDITS_BACK: "back:hold:{hold}",
    EntrySource.RELAY_TRANSACTION: "hold:{hold}:1",
    EntrySource.RELAY_REVERSAL: "reversal:hold:{hold}",
    EntrySource.EARNING_REVERSAL: "reversed-earning:tapjoy:{random}",
    EntrySource.PAYOUT_CLAWBACK: "stripe:invoice:in_{random}:clawback:1",
    EntrySource.STAFF_ADJUSTMENT: "approval:{number}",
    EntrySource.CREDIT_EXPIRY: "expiry:{entry}:0",
    EntrySource.FIRST_CREDITS: "first:hold:{hold}",
    EntrySource.DEBT_TRANSFER: "debt:{account}:2:from",
}


def _adjust(user: User, credits: int, **changes: Any) -> ApprovalRequest:
    asked: dict[str, Any] = {"actor": member("support"), "reason": "paid twice", **changes}
    return adjustments.request(user=user, credits=credits, key=secrets.token_hex(8), **asked)


@pytest.fixture
def charged() -> tuple[CreditAccount, int]:
    """Return an account with an honest adjustment and an honest charge, and the charge's hold."""
    user = UserFactory.create()
    _adjust(user, 50)
    hold = place_hold(user=user, credits=50, key=secrets.token_hex(8))
    capture(hold_id=hold.hold.pk, credits=30)
    assert causes.find_differences() == []
    return CreditAccount.objects.get(user=user), hold.hold.pk


def _forge(account: CreditAccount, source: str, key: str, credits: int) -> None:
    params: dict[str, Any] = {"account": account.pk, "source": source, "key": key, "credits": credits}
    with connection.cursor() as cursor:
        cursor.execute(_POST, params)


@pytest.mark.parametrize("source", EntrySource.values)
def test_a_forged_entry_of_any_source_is_found_by_the_next_comparison(
    charged: tuple[CreditAccount, int], source: str
) -> None:
    account, hold_id = charged
    key = _KEYS[EntrySource(source)].format(
        account=account.pk,
        entry=CreditEntry.objects.filter(account=account).earliest("pk").pk,
        hold=hold_id,
        number=random.randint(1, 10**9),
        random=secrets.token_hex(8),
    )
    forged = random.randint(1, 10**6)
    _forge(account, source, key, forged)
    run = causes.reconcile(now=timezone.now())
    assert run is not None
    [finding] = run.findings
    assert finding["ids"]["key"] == key
    assert (finding["rule"], finding["have"]) == ("an entry has a cause", f"{source} {forged}")
    assert run.counts["findings"] == 1


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE credits_entry SET amount = amount + 1, balance_after = balance_after + 1 WHERE key = %s",
        """
        UPDATE credits_entry SET account_id = (SELECT min(id) FROM credits_account WHERE id <> account_id)
        WHERE key = %s
        """,
        "UPDATE credits_entry SET source = 'CHECK_IN' WHERE key = %s",
        "UPDATE credits_entry SET actor_id = NULL WHERE key = %s",
    ],
)
def test_an_entry_has_amount_account_source_and_actor_of_its_cause(
    charged: tuple[CreditAccount, int], change: str
) -> None:
    UserFactory.create()
    open_account(user_id=UserFactory.create().pk)
    approval = _adjust(charged[0].person, random.randint(1, 100))
    tamper(change, f"approval:{approval.pk}")
    [finding] = causes.find_differences()
    assert finding["ids"]["key"] == f"approval:{approval.pk}"


def test_a_cause_without_its_entry_is_found(charged: tuple[CreditAccount, int]) -> None:
    given = random.randint(1, 100)
    approval = _adjust(charged[0].person, given)
    tamper("DELETE FROM credits_entry WHERE key = %s", f"approval:{approval.pk}")
    [finding] = causes.find_differences()
    assert (finding["rule"], finding["have"]) == ("a cause has an entry", "nothing")
    assert finding["wanted"] == f"STAFF_ADJUSTMENT {given}"


def test_a_request_that_the_audit_log_does_not_show_is_no_cause(charged: tuple[CreditAccount, int]) -> None:
    account, _ = charged
    clerk = member("support")
    approval = make(
        ApprovalRequest,
        kind="adjust_credits",
        object_id=str(account.user_id),
        payload={"credits": 777_777},
        requested_by=clerk,
        needs_second_person=False,
        status="done",
        decided_at=timezone.now(),
    )
    _forge(account, EntrySource.STAFF_ADJUSTMENT, f"approval:{approval.pk}", 777_777)
    assert [finding["rule"] for finding in causes.find_differences()] == [
        "an adjustment names who asked for it",
        "an entry has a cause",
    ]


def test_charges_that_were_reversed_and_made_again_have_their_hold_as_cause(
    charged: tuple[CreditAccount, int],
) -> None:
    account, hold_id = charged
    for cost in (20, 0, 25):
        holds.reopen(hold_ids=[hold_id])
        assert causes.find_differences() == []
        holds.close(costs={hold_id: cost})
        assert causes.find_differences() == []
    tamper("UPDATE credits_hold SET reopenings = 1")
    keys = {finding["ids"]["key"] for finding in causes.find_differences()}
    assert keys == {f"hold:{hold_id}:3", f"hold:{hold_id}:1", f"reversal:hold:{hold_id}:1"}
    assert account.entries.count() == 6
