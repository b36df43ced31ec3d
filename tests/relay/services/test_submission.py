"""Accepting a call: holds and charges, repeats, and how far an account may go into debt."""

import secrets
from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from credits import queries as credit_queries
from credits.errors import InsufficientCredits
from credits.models import PROOFS, CreditEntry, EntrySource, UnbackedCeiling
from credits.queries import balance_of
from credits.services import entries
from credits.services.reconciliation import find_differences
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.models import Attempt, RelayTransaction
from relay.queries.reports import TransactionReport
from rewards.models import Badge, BadgeTrack
from tests.relay.callers import execute, report_of
from tests.relay.conftest import Accept, Refused
from users.models import User


def test_a_call_is_executed_by_the_key_manager_and_charged_its_cost_on_chain(
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    services: Services,
) -> None:
    before = credit_queries.balance_of(user)

    transaction_hash = execute(user=user, call=new_call(), now=timezone.now())
    assert credit_queries.balance_of(user).held > 0
    assert settle() == 1

    receipt = services.rpc.call("eth_getTransactionReceipt", transaction_hash)
    wei = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    cost = -(-wei // settings.CREDIT_WEI)
    assert (receipt["status"], receipt["to"].lower()) == ("0x1", profile.key_manager_address.lower())
    after = credit_queries.balance_of(user)
    assert (after.balance, after.held) == (before.balance - cost, 0)
    report = report_of(user=user, transaction_hash=transaction_hash)
    assert report == TransactionReport(
        report.id,
        "Success",
        profile.profile_address,
        cost,
        before.balance,
        before.balance - cost,
        chain_id=settings.CHAIN_ID,
    )


def test_a_repeat_returns_the_same_hash_before_and_after_settlement(
    user: User, new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    call = new_call()

    first = execute(user=user, call=call, now=timezone.now())
    assert execute(user=user, call=call, now=timezone.now()) == first
    settle()

    assert execute(user=user, call=call, now=timezone.now()) == first
    assert RelayTransaction.objects.count() == Attempt.objects.count() == 1


pytestmark = pytest.mark.django_db


def set_debt_limit(credits: int) -> None:
    """Let every badge of the permanent ladder owe this much."""
    Badge.objects.filter(track=BadgeTrack.PERMANENT).update(acceptable_credit_debt=credits)


def leave_credits(user: User, credits: int) -> None:
    """Correct the balance so that this much is available."""
    change = credits - balance_of(user).available
    entries.adjust(user=user, credits=change, key=secrets.token_hex(8), actor=None, reason="for a test")


def test_a_call_may_be_held_on_debt_up_to_the_limit(
    user: User,
    accept: Accept,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
    refused: Refused,
) -> None:
    price = accept().hold.amount
    set_debt_limit(2 * price)
    leave_credits(user, 1)
    accept(channel=1)
    call = new_call(channel=2)
    # Half a hold is left of the debt.
    leave_credits(user, -2 * price + price // 2)
    refusal = refused.call(InsufficientCredits, user, call)
    assert refusal.members["debtLimit"] == 2 * price

    assert settle() == 2
    assert balance_of(user).held == 0
    assert find_differences() == []


def test_debt_is_limited_by_earned_credits(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    call = new_call()
    set_debt_limit(10**9)
    kept = sum(CreditEntry.objects.filter(source__in=PROOFS).values_list("amount", flat=True))
    assert kept > 10
    reversed_ = EntrySource.EARNING_REVERSAL
    entries.reverse(user=user, credits=kept - 10, source=reversed_, key=secrets.token_hex(8))
    leave_credits(user, 1)
    refusal = refused.call(InsufficientCredits, user, call)
    assert refusal.members["debtLimit"] == 10


def test_the_service_lends_no_more_than_its_ceiling_in_a_day(
    user: User, accept: Accept, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    price = accept().hold.amount
    set_debt_limit(10**9)
    UnbackedCeiling.objects.create(credits=price + price // 2)
    leave_credits(user, 0)
    accept(channel=1)
    call = new_call(channel=2)
    refusal = refused.call(InsufficientCredits, user, call)
    assert refusal.members["debtLimit"] == price + price // 2
    assert "until midnight UTC" in refusal.detail
    leave_credits(user, price)
    assert execute(user=user, call=call, now=timezone.now())
