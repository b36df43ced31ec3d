"""From a relay call on a real chain to the messages about it: once each, in order, and to whom it concerns."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry
from relay.models import RelayTransaction, ReversedSettlement
from tests.factories import make
from tests.relay import conftest as relay
from tests.relay.chain import Chain
from tests.relay.conftest import Accept, Settle
from tests.webhooks.conftest import App, sign_in
from users.models import User
from webhooks.models import Endpoint, EventType, Message, Subject
from webhooks.services import collection, endpoints

accept, chain, create_profile, new_call, open_account, profile, relayers, settle, trusted, user = (
    relay.accept,
    relay.chain,
    relay.create_profile,
    relay.new_call,
    relay.open_account,
    relay.profile,
    relay.relayers,
    relay.settle,
    relay.trusted,
    relay.user,
)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _call_events_only(app: App) -> None:
    """The users of these tests are given credits first, which is another subject."""
    Endpoint.objects.update(event_types=[kind for kind in EventType.values if kind.startswith("call.")])


def collect(*, after: timedelta = timedelta(0)) -> None:
    collection.collect(now=timezone.now() + after)


def message_events() -> list[tuple[str, Any]]:
    """Return type and status of what waits or was delivered, in order."""
    return [(row.type, json.loads(row.body)["data"].get("status")) for row in Message.objects.order_by("pk")]


def test_a_calls_events_are_sent_from_acceptance_to_its_end(
    app: App, user: User, accept: Accept, settle: Settle
) -> None:
    sign_in(user)
    collect()
    answered = accept().transaction_hash
    collect()
    collect()
    assert app.deliver() == 1
    [accepted] = app.receiver.requests
    assert accepted.verified(app.secret)["data"] == {
        "transactionHash": answered,
        "transactionSenderAddress": user.profile_address,
        "chainId": settings.CHAIN_ID,
        "status": "Pending",
        "creditsUsed": RelayTransaction.objects.get().expected_cost,
    }

    assert settle() == 1
    collect()
    collect(after=timedelta(minutes=5))
    assert app.deliver() == 1
    call = RelayTransaction.objects.get()
    content = app.receiver.requests[1].verified(app.secret)
    assert content["type"] == "call.settled"
    assert content["data"] == {
        "transactionHash": answered,
        "transactionSenderAddress": user.profile_address,
        "chainId": settings.CHAIN_ID,
        "status": "Success",
        "creditsUsed": -CreditEntry.objects.get(source="RELAY_TRANSACTION").amount,
        "failureCode": "",
        "minedHash": call.transaction_hash,
    }


def test_a_reversed_settlement_is_sent_in_between(
    app: App, user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    sign_in(user)
    collect()
    accept()
    settle()
    collect()
    undo(RelayTransaction.objects.get())
    collect()
    collect()
    assert message_events() == [
        ("call.accepted", "Pending"),
        ("call.settled", "Success"),
        ("call.reopened", "Submitted"),
    ]
    collect(after=timedelta(minutes=5))
    RelayTransaction.objects.update(status="Success", settled_at=timezone.now())
    collect(after=timedelta(minutes=5, seconds=1))
    assert message_events()[3:] == [("call.settled", "Success")]
    assert Message.objects.values("ordering_key").distinct().count() == 1


def test_a_reenabled_app_gets_the_final_events_of_calls_it_missed(
    app: App, user: User, accept: Accept, settle: Settle
) -> None:
    sign_in(user)
    collect()
    accept()
    collect()
    endpoints.disable(app.endpoint.pk, by=Endpoint.DisabledBy.STAFF, now=timezone.now())
    settle()
    accept()
    collect()
    endpoints.enable(app.endpoint, now=timezone.now())
    collect()
    assert message_events() == [("call.accepted", "Pending"), ("call.settled", "Success")]


def test_events_during_a_collector_outage_are_sent_in_order(
    app: App, user: User, accept: Accept, settle: Settle, chain: Chain
) -> None:
    sign_in(user)
    collect()
    accept()
    settle()
    call = RelayTransaction.objects.get()
    undo(call)
    RelayTransaction.objects.update(status="Success", settled_at=timezone.now())
    collect(after=timedelta(minutes=45))
    assert [kind for kind, _ in message_events()] == [
        "call.accepted",
        "call.settled",
        "call.reopened",
        "call.settled",
    ]


def test_a_call_whose_transaction_commits_late_is_sent(app: App, user: User, accept: Accept) -> None:
    sign_in(user)
    collect()
    accept()
    Endpoint.objects.update(enabled_at=timezone.now() - timedelta(hours=1))
    RelayTransaction.objects.update(created_at=timezone.now() - timedelta(seconds=100))
    collect()
    assert message_events() == [("call.accepted", "Pending")]


@pytest.mark.parametrize(
    "session",
    [
        None,
        {"origin": "https://other.example"},
        {"origin": ""},
        {"revoked_at": timezone.now() - timedelta(minutes=30), "revoked_reason": "signed-out"},
        {"expires_at": timezone.now() - timedelta(minutes=30)},
        {"created_at": timezone.now() + timedelta(hours=1)},
    ],
    ids=["never", "elsewhere", "unnamed", "signed-out", "expired", "later"],
)
def test_an_app_gets_only_events_of_users_signed_in_there(
    app: App, user: User, accept: Accept, session: dict[str, Any] | None
) -> None:
    if session is not None:
        sign_in(user, **session)
    collect()
    accept()
    collect()
    assert (Message.objects.count(), Subject.objects.count()) == (0, 0)


def undo(call: RelayTransaction) -> None:
    """Leave what a reorganisation leaves that took the call's block away."""
    assert call.settled_at is not None
    make(
        ReversedSettlement,
        relay_transaction=call,
        status=call.status,
        real_cost=call.real_cost,
        transaction_hash=call.transaction_hash,
        settled_at=call.settled_at,
        reversed_at=timezone.now(),
    )
    RelayTransaction.objects.filter(pk=call.pk).update(status="Submitted", settled_at=None)
