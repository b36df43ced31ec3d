"""The webhook endpoints of a sponsor over HTTP, for its members."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from sponsors.models import Member, Sponsor
from tests.database import rows_of
from tests.factories import UserFactory
from tests.relay.api.conftest import ApiResponse, Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.sponsors.sponsorships import make_sponsor
from tests.webhooks.receiver import Receiver
from webhooks.models import Endpoint, Message
from webhooks.services import delivery, endpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def sponsor(create_endpoint: Any) -> Sponsor:
    return make_sponsor()


def _member(sponsor: Sponsor, role: str = "manager") -> Wallet:
    user = UserFactory.create()
    Member.objects.create(sponsor=sponsor, user=user, role=role)
    return wallet_of(user)


def _path(sponsor: Sponsor, rest: str = "") -> str:
    return f"/api/sponsors/{sponsor.slug}/webhooks{rest}"


def _create(sponsor: Sponsor, wallet: Wallet, url: str) -> ApiResponse:
    return wallet.post(_path(sponsor), {"url": url, "events": ["sponsor.posted", "sponsor.low"]})


def test_a_manager_creates_an_endpoint_whose_secret_is_shown_once(
    sponsor: Sponsor, receiver: Receiver
) -> None:
    wallet = _member(sponsor)
    made = _create(sponsor, wallet, receiver.url)
    assert made.status == 200
    row = Endpoint.objects.get()
    assert made.body.pop("secret") == endpoints.live_secrets(row)[0]
    assert made.body == {
        "id": row.pk,
        "url": receiver.url,
        "events": ["sponsor.low", "sponsor.posted"],
        "isEnabled": True,
    }
    assert wallet.send("get", _path(sponsor)).body == {"webhooks": [made.body]}

    newer = wallet.post(_path(sponsor, f"/{row.pk}/secret"), {}).body["secret"]
    row.refresh_from_db()
    assert endpoints.live_secrets(row)[0] == newer
    assert wallet.post(_path(sponsor, f"/{row.pk}/test"), {}).status == 200
    assert Message.objects.get().type == "webhook.test"

    assert wallet.send("delete", _path(sponsor, f"/{row.pk}")).body == {"webhooks": []}
    row.refresh_from_db()
    assert not row.is_enabled


def test_endpoints_require_a_manager_of_the_sponsor_and_a_public_address(
    sponsor: Sponsor, receiver: Receiver, settings: Any
) -> None:
    manager, viewer, other = _member(sponsor), _member(sponsor, "viewer"), _member(make_sponsor())
    made = _create(sponsor, manager, receiver.url).body["id"]
    before = rows_of(Endpoint, Message)
    assert_problem(_create(sponsor, viewer, receiver.url), 403, "permission-denied")
    assert_problem(_create(sponsor, other, receiver.url), 404, "not-found")
    for path in (f"/{made}/secret", f"/{made}/test"):
        assert_problem(viewer.post(_path(sponsor, path), {}), 403, "permission-denied")
    assert_problem(viewer.send("delete", _path(sponsor, f"/{made}")), 403, "permission-denied")
    theirs = make_sponsor()
    assert_problem(_member(theirs).post(_path(theirs, f"/{made}/secret"), {}), 404, "not-found")
    settings.WEBHOOK_ALLOW_LOOPBACK = False
    assert_problem(_create(sponsor, manager, receiver.url), 400, "endpoint-refused")
    bad = {"url": receiver.url, "events": ["credits.posted"]}
    assert_problem(manager.post(_path(sponsor), bad), 400, "invalid-request")
    assert rows_of(Endpoint, Message) == before
    assert len(viewer.send("get", _path(sponsor)).body["webhooks"]) == 1


def _made(sponsor: Sponsor, wallet: Wallet, receiver: Receiver) -> Endpoint:
    return Endpoint.objects.get(pk=_create(sponsor, wallet, receiver.url).body["id"])


def test_a_sponsor_sees_the_state_of_its_messages_and_resends_one(
    sponsor: Sponsor, receiver: Receiver
) -> None:
    manager, viewer = _member(sponsor), _member(sponsor, "viewer")
    endpoint = _made(sponsor, manager, receiver)
    path = _path(sponsor, f"/{endpoint.pk}/messages")
    assert viewer.send("get", path).body == {"messages": []}
    row = endpoints.send_test(endpoint, now=timezone.now())
    [waiting] = viewer.send("get", path).body["messages"]
    assert (waiting["status"], waiting["attempts"], waiting["responseStatus"]) == ("waiting", 0, None)
    assert waiting["nextAttemptAt"] == waiting["createdAt"]

    receiver.answers = [503]
    delivery.deliver_due(now=timezone.now())
    [failed] = viewer.send("get", path).body["messages"]
    assert (failed["status"], failed["attempts"], failed["responseStatus"]) == ("waiting", 1, 503)
    delivery.deliver_due(now=timezone.now() + timedelta(minutes=1))
    newer = endpoints.send_test(endpoint, now=timezone.now() + timedelta(hours=1))
    first, delivered = viewer.send("get", path).body["messages"]
    assert first["id"] == newer.public_id
    assert delivered == {
        "id": row.public_id,
        "type": "webhook.test",
        "status": "delivered",
        "attempts": 2,
        "createdAt": waiting["createdAt"],
        "nextAttemptAt": None,
        "responseStatus": 204,
        "error": "",
    }

    again = manager.post(f"{path}/{row.public_id}/resend", {}).body["messages"][1]
    assert (again["status"], again["attempts"]) == ("waiting", 0)
    delivery.deliver_due(now=timezone.now())
    assert [request.event_id for request in receiver.requests] == [row.public_id] * 3


def test_only_managers_of_the_sponsor_resend_messages(sponsor: Sponsor, receiver: Receiver) -> None:
    manager, viewer = _member(sponsor), _member(sponsor, "viewer")
    endpoint, other = _made(sponsor, manager, receiver), make_sponsor()
    row = endpoints.send_test(endpoint, now=timezone.now())
    delivery.deliver_due(now=timezone.now())
    theirs = _member(other)
    mine = _made(other, theirs, receiver)
    resend = f"/{endpoint.pk}/messages/{row.public_id}/resend"
    before, sent = rows_of(Endpoint, Message), rows_of(Message)
    assert_problem(viewer.post(_path(sponsor, resend), {}), 403, "permission-denied")
    assert_problem(theirs.post(_path(other, resend), {}), 404, "not-found")
    of_mine = resend.replace(f"/{endpoint.pk}/", f"/{mine.pk}/")
    assert_problem(theirs.post(_path(other, of_mine), {}), 404, "not-found")
    assert_problem(theirs.send("get", _path(other, f"/{endpoint.pk}/messages")), 404, "not-found")
    assert rows_of(Endpoint, Message) == before
    endpoints.disable(endpoint.pk, by=Endpoint.DisabledBy.GONE, now=timezone.now())
    assert_problem(manager.post(_path(sponsor, resend), {}), 409, "endpoint-disabled")
    assert rows_of(Message) == sent
