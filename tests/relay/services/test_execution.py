"""A signed call goes to the chain and comes back settled in credits."""

from collections.abc import Callable

import pytest
from django.conf import settings
from django.utils import timezone

from credits import queries as credit_queries
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay import queries
from relay.models import Attempt, RelayTransaction
from relay.services.submission import execute
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_call_is_executed_by_the_key_manager_and_charged_what_the_chain_says(
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
    report = queries.transaction_report(user=user, transaction_hash=transaction_hash)
    assert report == queries.TransactionReport(
        "Success", profile.profile_address, cost, before.balance, before.balance - cost
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


def test_the_most_that_the_call_may_cost_is_held(user: User, new_call: Callable[..., RelayCall]) -> None:
    execute(user=user, call=new_call(), now=timezone.now())
    row, attempt = RelayTransaction.objects.get(), Attempt.objects.get()
    assert row.hold.amount == -(-attempt.gas_limit * attempt.max_fee_per_gas_wei // settings.CREDIT_WEI)
    assert row.hold.amount > row.expected_cost
