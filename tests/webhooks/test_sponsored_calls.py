"""From a sponsored call on a real chain to the messages for its sponsor: once each, in order, and without its user."""

import json
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devstack.services.stack import Services
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from sponsors.models import Sponsor, SponsoredCall
from sponsors.queries.figures import user_reference
from tests.factories import make
from tests.relay import conftest as relay
from tests.relay.chain import Chain
from tests.relay.conftest import Settle
from tests.relay.creating import create, deployment_of, for_profiles
from tests.relay.services.test_vouchers import Issuer, execute_vouched
from tests.relay.sponsoring import execute_sponsored, hold_of, row_of
from tests.relay.workers import resend, track
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.webhooks.receiver import Receiver
from users.models import AccountDeletion, User
from webhooks.models import OF_SPONSORED_CALLS, Endpoint, Message, Subject
from webhooks.services import collection, delivery, endpoints, messages

chain, create_profile, new_call, open_account, profile, relayers, settle, trusted, user = (
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


@pytest.fixture
def listen(receiver: Receiver, create_endpoint: Any) -> Callable[..., tuple[Endpoint, str]]:
    """Return what gives a sponsor an endpoint for its calls, with its secret."""

    def add(sponsor: Sponsor, *event_types: str) -> tuple[Endpoint, str]:
        wanted = event_types or tuple(map(str, OF_SPONSORED_CALLS))
        row, secret = endpoints.create_for_sponsor(sponsor, url=receiver.url, event_types=wanted, maker=None)
        Endpoint.objects.filter(pk=row.pk).update(enabled_at=timezone.now() - timedelta(minutes=1))
        return row, secret

    return add


def collect(*, after: timedelta = timedelta(0)) -> None:
    collection.collect(now=timezone.now() + after)


def told() -> list[tuple[str, dict[str, Any]]]:
    bodies = [json.loads(row.body) for row in Message.objects.order_by("pk")]
    return [(body["type"], body["data"]) for body in bodies]


def test_a_sponsor_gets_the_end_of_a_call_without_its_user(
    user: User, new_call: Callable[..., RelayCall], settle: Settle, listen: Any, receiver: Receiver
) -> None:
    sponsor, other = make_sponsor(), make_sponsor()
    version = make_policy(sponsor, share_percent=50)
    (_, secret), _ = listen(sponsor), listen(other)
    collect()
    row = row_of(execute_sponsored(user, new_call(), sponsor))
    collect()
    assert told() == []
    assert settle() == 1
    collect()
    collect(after=timedelta(minutes=5))
    delivery.deliver_due(now=timezone.now())
    [request] = receiver.requests
    content = request.verified(secret)
    paid, row = hold_of(row), RelayTransaction.objects.get()
    assert content["type"] == "sponsor.call-settled"
    assert content["data"] == {
        "sponsor": sponsor.slug,
        "callId": SponsoredCall.objects.get().pk,
        "policy": version.policy.name,
        "version": 1,
        "user": user_reference(sponsor, user.pk),
        "transactionSenderAddress": None,
        "transactionHash": None,
        "hash": None,
        "voucherId": None,
        "status": "Success",
        "credits": paid.captured_amount,
        "entryId": paid.entry_id,
    }
    assert paid.captured_amount == -(-row.real_cost // 2)
    body = request.body.decode().lower()
    for private in (row.profile_address, row.controller_address, row.transaction_hash, row.digest):
        assert private.lower().removeprefix("0x") not in body


def test_the_sponsor_gets_the_profile_of_a_call_with_its_voucher(
    services: Services, user: User, new_call: Callable[..., RelayCall], settle: Settle, listen: Any
) -> None:
    issuer = Issuer(services)
    listen(issuer.sponsor)
    collect()
    voucher = issuer.voucher(str(user.profile_address))
    answered = execute_vouched(user, new_call(), issuer.choice(voucher))
    settle()
    collect()
    [(_, data)] = told()
    row = RelayTransaction.objects.get()
    assert {name: data[name] for name in ("user", "transactionSenderAddress", "transactionHash", "hash")} == {
        "user": None,
        "transactionSenderAddress": user.profile_address,
        "transactionHash": answered,
        "hash": row.digest,
    }
    assert data["voucherId"] == "0x" + voucher.voucher.voucher_id.hex()


def test_a_settlement_undone_by_the_chain_is_sent_in_between(
    user: User, new_call: Callable[..., RelayCall], settle: Settle, chain: Chain, listen: Any
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    listen(sponsor)
    collect()
    row = row_of(execute_sponsored(user, new_call(), sponsor))
    settle()
    collect()
    undone = hold_of(row).captured_amount
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    collect()
    collect()
    held = hold_of(row).amount
    assert [(kind, data["status"], data["credits"]) for kind, data in told()] == [
        ("sponsor.call-settled", "Success", undone),
        ("sponsor.call-reopened", "Submitted", held),
    ]
    resend()
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    collect()
    collect()
    kind, data = told()[-1]
    assert (len(told()), kind, data["credits"]) == (3, "sponsor.call-settled", hold_of(row).captured_amount)
    assert Message.objects.values("ordering_key").distinct().count() == 1


def test_a_call_that_fails_without_cost_is_sent_with_no_credits(
    user: User, new_call: Callable[..., RelayCall], listen: Any
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    listen(sponsor)
    collect()
    row = row_of(execute_sponsored(user, new_call(), sponsor))
    now = timezone.now()
    RelayTransaction.objects.filter(pk=row.pk).update(status="Cancelled", settled_at=now)
    collect()
    # The worker of an older version closes the user's hold alone, so what the sponsor pays is not known yet.
    assert told() == []
    type(row.hold).objects.filter(sponsors__hold=row.hold).update(status="RELEASED", closed_at=now)
    collect()
    [(_, data)] = told()
    assert (data["status"], data["credits"], data["entryId"]) == ("Cancelled", 0, None)


def test_earlier_calls_and_unsubscribed_endpoints_get_no_messages(
    user: User, new_call: Callable[..., RelayCall], settle: Settle, listen: Any
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    listen(sponsor, "sponsor.low")
    execute_sponsored(user, new_call(channel=1), sponsor)
    row, _ = listen(sponsor)
    Endpoint.objects.filter(pk=row.pk).update(enabled_at=timezone.now())
    execute_sponsored(user, new_call(channel=2), sponsor)
    settle()
    collect()
    assert list(Message.objects.values_list("endpoint", flat=True)) == [row.pk]
    assert Subject.objects.count() == 1


def test_messages_about_a_deleted_account_are_deleted(
    user: User, new_call: Callable[..., RelayCall], settle: Settle, listen: Any
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    listen(sponsor)
    collect()
    execute_sponsored(user, new_call(), sponsor)
    settle()
    collect()
    assert Message.objects.count() == 1
    make(AccountDeletion, user=user, requested_at=timezone.now())
    messages.forget(user)
    collect()
    assert (Message.objects.count(), Subject.objects.count()) == (0, 0)


def test_without_a_subscribed_endpoint_calls_are_not_read(
    user: User, new_call: Callable[..., RelayCall], settle: Settle, listen: Any
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    listen(sponsor, "sponsor.posted")
    execute_sponsored(user, new_call(), sponsor)
    settle()
    with CaptureQueriesContext(connection) as queries:
        collect()
    assert not [query for query in queries if "sponsors_sponsoredcall" in query["sql"]]


def test_a_sponsor_gets_the_end_of_a_profile_that_it_requested_by_name(
    relayers: object, trusted: None, services: Services, settle: Settle, listen: Any
) -> None:
    gift = secrets.randbelow(9_000) + 1
    sponsor = make_sponsor()
    for_profiles(sponsor, first_credits=gift, first_days=3)
    listen(sponsor)
    collect()
    rows = [create(sponsor)]
    settle()
    rows.append(create(sponsor))
    factory = deployment_of(rows[1]).key_manager_address
    code = services.rpc.call("eth_getCode", factory, "latest")
    services.rpc.call("anvil_setCode", factory, "0xfe")
    settle()
    services.rpc.call("anvil_setCode", factory, code)
    collect()
    created, failed = told()
    assert (created[0], failed[0]) == ("sponsor.profile-created", "sponsor.profile-failed")
    for row, (_, data), status in zip(rows, (created, failed), ("Success", "Failed"), strict=True):
        relayed = deployment_of(row)
        shown = (data["transactionSenderAddress"], data["transactionHash"], data["status"], data["credits"])
        assert shown == (row.profile_address, relayed.transaction_hash, status, relayed.real_cost)
        assert data["firstCredits"] == (gift if status == "Success" else 0)
        assert data["user"] is None
