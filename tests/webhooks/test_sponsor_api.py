"""The webhook endpoints of a sponsor over HTTP, for its members."""

from typing import Any

import pytest

from sponsors.models import Member, Sponsor
from tests.database import rows_of
from tests.factories import UserFactory
from tests.relay.api.conftest import Answer, Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.sponsors.sponsorships import make_sponsor
from tests.webhooks.receiver import Receiver
from webhooks.models import Endpoint, Message
from webhooks.services import endpoints

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


def _create(sponsor: Sponsor, wallet: Wallet, url: str) -> Answer:
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


def test_endpoints_are_for_those_who_manage_the_sponsor_and_at_public_addresses(
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
