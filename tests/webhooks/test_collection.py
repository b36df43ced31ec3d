"""Messages about credits and subscriptions, and that the page for wallet developers shows it as it is."""

import json
import re
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from credits.models import CreditAccount, CreditEntry, CreditHold, ExpiringLot
from credits.services import entries
from earnings.models import AdNetwork, Postback
from gateway.common.leases import try_lease
from payments.models import AutoTopUp, CreditPack, Customer, Purchase, Subscription
from relay.models import RelayTransaction, ReversedSettlement
from sponsors.models import Member, Policy, PolicyVersion, Sponsor, SponsoredCall, UsageScope
from sponsors.queries.figures import ProfileNumber
from tests.docs.pages import DOCS
from tests.factories import UserFactory, make
from tests.webhooks.conftest import App, sign_in
from users.models import User
from webhooks import payloads
from webhooks.models import CreditLevel, Cursor, Endpoint, EventType, Message, SponsorLevel
from webhooks.payloads import sponsors
from webhooks.services import collection, endpoints

pytestmark = pytest.mark.django_db


def message_bodies() -> list[dict[str, Any]]:
    return [json.loads(body) for body in Message.objects.order_by("pk").values_list("body", flat=True)]


def grant(user: User, credits: int) -> CreditEntry:
    return entries.grant(user=user, credits=credits, source="VIDEO_ADS", key=secrets.token_hex(8))


def subscribe(user: User) -> Subscription:
    return make(Subscription, user=user, amount_minor=2550)


def test_credit_changes_are_sent_once_and_in_order(app: App, user: User) -> None:
    grant(user, 25)
    grant(user, 5)
    for _ in range(2):
        collection.collect(now=timezone.now())
    for _ in range(2):
        app.deliver()
    received = [request.verified(app.secret)["data"] for request in app.receiver.requests]
    assert received == [
        {
            "address": user.profile_address,
            "creditSource": "VIDEO_ADS",
            "creditsEarned": amount,
            "creditsBefore": before,
            "creditsAfter": before + amount,
        }
        for amount, before in ((25, 0), (5, 25))
    ]


def test_an_app_gets_its_chosen_events_since_it_was_enabled(app: App, user: User) -> None:
    app.endpoint.event_types = [EventType.SUBSCRIPTION_CHANGED]
    app.endpoint.save()
    grant(user, 25)
    collection.collect(now=timezone.now())
    app.endpoint.event_types = [EventType.CREDITS_POSTED]
    app.endpoint.enabled_at = timezone.now() + timedelta(seconds=1)
    app.endpoint.save()
    collection.collect(now=timezone.now())
    assert message_bodies() == []


def test_only_changes_of_a_subscription_are_sent(app: App, user: User) -> None:
    row = subscribe(user)
    steps: list[dict[str, Any]] = [
        {},
        {"cancels_at_period_end": True},
        {},
        {"status": "canceled"},
        {"status": "canceled"},
    ]
    for number, change in enumerate(steps):
        synced_at = row.synced_at + timedelta(seconds=number)
        Subscription.objects.filter(pk=row.pk).update(synced_at=synced_at, **change)
        collection.collect(now=timezone.now() + timedelta(seconds=10))
    states = [(one["data"]["status"], one["data"]["cancelAtEndOfBillingPeriod"]) for one in message_bodies()]
    assert states == [("active", False), ("active", True), ("canceled", True)]
    assert message_bodies()[0]["data"]["subscriptionCost"] == 2550


def test_credit_changes_of_other_users_are_not_sent(app: App) -> None:
    collection.collect(now=timezone.now())
    other, elsewhere = UserFactory.create(), UserFactory.create()
    sign_in(elsewhere, "https://wallet.example.evil.example")
    for person in (other, elsewhere):
        grant(person, 5)
        subscribe(person)
    collection.collect(now=timezone.now())
    assert message_bodies() == []


@pytest.mark.parametrize(("status", "reason"), [("paid", ""), ("void", "card-declined")])
def test_every_finished_automatic_purchase_is_sent_once(
    app: App, user: User, status: str, reason: str
) -> None:
    now, customer = timezone.now(), Customer.objects.create(user=user, stripe_customer_id="cus_1")
    pack = CreditPack.objects.order_by("pk")[0]
    terms = {"pack": pack, "amount_minor": pack.amount_minor, "currency": pack.currency}
    top_up = AutoTopUp.objects.create(
        user=user, threshold=5, monthly_limit_minor=10**6, consent="yes", consented_at=now, **terms
    )
    for automatic in (top_up, None):
        made = Purchase.objects.create(
            user=user, customer=customer, top_up=automatic, status=status, failure_code=reason, created_at=now,
            finished_at=now, **terms,
        )  # fmt: skip
    for _ in range(2):
        collection.collect(now=timezone.now())
    (body,) = message_bodies()
    assert (body["type"], body["data"]["status"], body["data"]["reason"]) == (
        "credits.top-up",
        status,
        reason,
    )
    assert body["data"]["purchaseId"] != str(made.pk)


_SPONSOR = Sponsor(pk=1, slug="my-dapp", alarm_credits=1)


def _purchase(user: User) -> Purchase:
    return Purchase(
        user=user, status="void", amount_minor=1_000, currency="usd", failure_code="card-declined"
    )


def _sponsored(call: RelayTransaction) -> SponsoredCall:
    version = PolicyVersion(policy=Policy(sponsor=_SPONSOR, name="first-calls"), number=1, share_percent=100)
    hold, paid = CreditHold(amount=1), CreditHold(amount=1, captured_amount=1, entry_id=1, status="CAPTURED")
    call.digest, hold.relay_transaction = "0x", call
    return SponsoredCall(pk=1, hold=hold, sponsor_hold=paid, version=version, user=call.user)


def _number() -> ProfileNumber:
    version = PolicyVersion(policy=Policy(pk=1, sponsor=_SPONSOR, name="newcomers"), number=1)
    return ProfileNumber(version, UsageScope.WINDOW, 10, 8, timezone.now(), timezone.now())


def _every_type(app: App) -> dict[str, dict[str, Any]]:
    """Return a message of each type as the service writes it, by type."""
    now, user = timezone.now(), UserFactory.create()
    call = RelayTransaction(
        user=user, profile_address=str(user.profile_address), status="Success", expected_cost=1
    )
    call.created_at = call.settled_at = now
    deployments = [
        RelayTransaction(user=user, profile_address=call.profile_address, status=status, deploys_profile=True)
        for status in ("Success", "Failed")
    ]
    for deployment in deployments:
        deployment.settled_at = now
    undone = ReversedSettlement(number=0, status="Success", real_cost=1, settled_at=now, reversed_at=now)
    account = CreditAccount.objects.create(user=user)
    entry = CreditEntry(account=account, source="VIDEO_ADS", amount=1, balance_before=0, balance_after=1)
    entry.created_at = now
    level = CreditLevel(user=user, use=1)
    expiring = ExpiringLot(entry=entry, credits=1, expires_at=now, announced_at=now)
    earning = Postback(pk=1, user=user, network=AdNetwork(slug="tapjoy"), decided_at=now)
    credits_ = (EventType.CREDITS_LOW, EventType.CREDITS_DEPLETED, EventType.CREDITS_RECOVERED)
    earnings = (EventType.EARNING_HELD, EventType.EARNING_RELEASED, EventType.EARNING_REVERSED)
    events = [
        *(payloads.of_level(kind, level, balance=1, account_id=1, at=now) for kind in credits_),
        *(
            payloads.of_earning(kind, earning, earning_id=1, credits=1, arrives_at=now, because="review")
            for kind in earnings
        ),
        payloads.of_expiry(expiring),
        *(
            sponsors.of_level(
                SponsorLevel(is_low=is_low), sponsor=_SPONSOR, balance=1, at=now, member=Member(user=user)
            )
            for is_low in (True, False)
        ),
        sponsors.of_number(_number(), percent=80, at=now),
        sponsors.of_entry(entry, sponsor=_SPONSOR),
        *payloads.history_of(call, first_hash="0x", charged=1, reversals=[undone]),
        *sponsors.history_of(_sponsored(call), user="0" * 16, first_hash="0x", reversals=[undone]),
        *(
            event
            for deployment in deployments
            for event in sponsors.history_of(_sponsored(deployment), user="", first_hash="0x", reversals=[])
        ),
        payloads.of_entry(entry, user_id=user.pk, profile_address=str(user.profile_address)),
        payloads.of_top_up(
            _purchase(user), credits=1, profile_address=str(user.profile_address), at=timezone.now()
        ),
        payloads.of_subscription(subscribe(user), profile_address=str(user.profile_address)),
    ]
    test = json.loads(endpoints.send_test(app.endpoint, now=now).body)
    return {event.type.value: json.loads(event.body) for event in events} | {test["type"]: test}


def test_the_page_shows_every_type_with_its_members(app: App) -> None:
    def shape(data: dict[str, Any]) -> dict[str, type]:
        return {name: type(value) for name, value in data.items() if value is not None}

    page = (DOCS / "webhooks.md").read_text()
    whole, others = map(json.loads, re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    written = _every_type(app)
    assert (
        set(written)
        == set(EventType.values)
        == set(re.findall(r"^\| `([a-z]+\.[a-z-]+)` \|", page, re.MULTILINE))
    )
    alike = dict(re.findall(r"^\| `([a-z.-]+)` \|.*\| as `([a-z.-]+)` \|$", page, re.MULTILINE))
    examples = {whole["type"]: whole["data"], **others}
    assert {kind: shape(examples[alike.get(kind, kind)]) for kind in written} == {
        kind: shape(content["data"]) for kind, content in written.items()
    }
    assert {frozenset(content) for content in written.values()} == {frozenset(whole)}


def test_an_announced_expiry_is_sent_once(app: App, user: User) -> None:
    collection.collect(now=timezone.now())
    entry = CreditEntry.objects.get(pk=grant(user, 70).pk)
    row = ExpiringLot.objects.create(entry=entry, credits=70, expires_at=timezone.now() + timedelta(days=14))

    for _ in range(2):
        collection.collect(now=timezone.now() + timedelta(seconds=5))

    (told,) = (body for body in message_bodies() if body["type"] == "credits.expiring")
    assert told["data"] == {
        "address": user.profile_address, "credits": 70, "creditSource": entry.source,
        "expiresAt": int(row.expires_at.timestamp()),
    }  # fmt: skip


def test_only_one_run_at_a_time_reads(app: App, user: User) -> None:
    grant(user, 25)
    with try_lease("webhooks.collect"):
        collection.collect(now=timezone.now())
        assert message_bodies() == []
    collection.collect(now=timezone.now())
    assert len(message_bodies()) == 1


def test_after_a_month_every_source_is_read_in_few_slices(app: App, user: User) -> None:
    now = timezone.now()
    grant(user, 25)
    Cursor.objects.update(read_until=now - timedelta(days=30))
    Endpoint.objects.update(enabled_at=now - timedelta(days=31))
    with CaptureQueriesContext(connection) as queries:
        collection.collect(now=timezone.now())
    assert len(message_bodies()) == 1
    assert not Cursor.objects.filter(read_until__lt=now).exists()
    slices = [one for one in queries if one["sql"].startswith('UPDATE "webhooks_cursor"')]
    assert len(slices) < 9 * 50


def test_a_run_ends_in_time_for_other_tasks_and_the_next_one_continues(
    app: App, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    grant(user, 25)
    now = timezone.now()
    Cursor.objects.update(read_until=now - timedelta(hours=1))
    Endpoint.objects.update(enabled_at=now - timedelta(days=2))
    monkeypatch.setattr(collection, "_RUN_SECONDS", -1)
    collection.collect(now=now)
    # Each source has had its turn.
    with_subscribers = Cursor.objects.exclude(source="sponsored-calls")
    (read_until,) = set(with_subscribers.values_list("read_until", flat=True))
    assert now - timedelta(hours=1) < read_until < now - timedelta(minutes=40)
    while Cursor.objects.filter(read_until__lt=now).exists():
        collection.collect(now=now)
    assert len(message_bodies()) == 1
