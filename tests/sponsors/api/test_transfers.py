"""Transfers of own credits to a sponsor, on the wire."""

import random
import secrets
from typing import Any

import pytest

from credits.models import CreditAccount, CreditEntry
from credits.services import entries
from gateway.staff import approvals
from gateway.staff.approval_kinds import RequestOutdated
from sponsors.models import Member, Sponsor, Transfer
from sponsors.services import transfers
from tests.factories import UserFactory
from tests.relay.api.conftest import Answer, Wallet, wallet_of
from tests.relay.api.test_execute import assert_problem
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_sponsor
from tests.staff import member
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def sponsor() -> Sponsor:
    return make_sponsor(0)


def paying(user: User) -> int:
    """Give the person paid credits, and some of a check-in; return how many are paid."""
    paid = random.randint(1_000, 5_000)
    for source, amount in (("CREDIT_PURCHASE", paid), ("CHECK_IN", 700)):
        entries.grant(user=user, credits=amount, source=source, key=secrets.token_hex(8))
    return paid


def path(sponsor: Sponsor) -> str:
    return f"/api/sponsors/{sponsor.slug}/transfers"


def transfer(user: User, sponsor: Sponsor, credits: Any, key: str | None = None) -> Answer:
    headers = {"Idempotency-Key": secrets.token_hex(8) if key is None else key}
    return wallet_of(user).post(path(sponsor), {"credits": credits}, **headers)


def test_an_owner_transfers_once_and_members_see_it(sponsor: Sponsor) -> None:
    owner, viewer, key = member_of(sponsor), member_of(sponsor, "viewer"), secrets.token_hex(8)
    moved = random.randint(1, paying(owner))
    first, again = (transfer(owner, sponsor, moved, key) for _ in range(2))
    assert first.status == 200, first.body
    assert first.body == again.body
    assert {name: first.body[name] for name in ("profile", "credits", "clawedBack", "status")} == {
        "profile": owner.profile_address,
        "credits": moved,
        "clawedBack": 0,
        "status": "moved",
    }
    assert call(viewer, "get", path(sponsor)).body["results"] == [first.body]
    assert CreditAccount.objects.get(sponsor=sponsor).balance == moved
    history = call(owner, "get", "/api/user/earnings").body["results"]
    assert (history[0]["credit_source"], history[0]["credits_earned"]) == ("TRANSFER_OUT", -moved)


def test_a_transfer_beyond_the_day_waits(sponsor: Sponsor, settings: Any) -> None:
    owner, settings.SPONSOR_TRANSFER_PER_DAY = member_of(sponsor), 99
    paying(owner)
    waiting = transfer(owner, sponsor, 100)
    assert (waiting.body["status"], waiting.body["endedAt"]) == ("waiting", None)
    assert_problem(transfer(owner, sponsor, 100), 409, "sponsor-transfer-waiting")
    assert transfer(owner, sponsor, 99).body["status"] == "moved"
    assert CreditAccount.objects.get(sponsor=sponsor).balance == 99


def test_a_transfer_that_waits_is_withdrawn_by_its_owner_alone_and_never_moves(
    sponsor: Sponsor, settings: Any
) -> None:
    owner, other, settings.SPONSOR_TRANSFER_PER_DAY = member_of(sponsor), member_of(sponsor), 0
    elsewhere, paid = make_sponsor(0), paying(owner)
    Member.objects.create(sponsor=elsewhere, user=owner, role="owner")
    waiting = transfer(owner, sponsor, paid)
    one = f"{path(sponsor)}/{waiting.body['id']}"
    row = Transfer.objects.get()
    approval = transfers.request(
        transfer=row, actor=member("support"), reason="known", key=secrets.token_hex(8)
    )
    assert_problem(call(other, "delete", one), 404, "not-found")
    assert_problem(call(owner, "delete", f"{path(elsewhere)}/{row.pk}"), 404, "not-found")
    assert Transfer.objects.get().status == "waiting"
    first, again = (call(owner, "delete", one) for _ in range(2))
    assert (first.status, first.body["status"]) == (200, "withdrawn"), first.body
    assert first.body["endedAt"] is not None
    assert again.body == first.body
    with pytest.raises(RequestOutdated):
        approvals.approve(request_id=approval.pk, actor=member("finance"), reason="checked")
    assert CreditAccount.objects.get(sponsor=sponsor).balance == 0
    settings.SPONSOR_TRANSFER_PER_DAY = paid
    moved = transfer(owner, sponsor, paid)
    assert moved.body["status"] == "moved"
    assert_problem(
        call(owner, "delete", f"{path(sponsor)}/{moved.body['id']}"), 409, "sponsor-transfer-ended"
    )
    assert CreditAccount.objects.get(sponsor=sponsor).balance == paid


def test_refusals_move_nothing(sponsor: Sponsor) -> None:
    owner, key = member_of(sponsor), secrets.token_hex(8)
    paid = paying(owner)
    before = list(CreditEntry.objects.values())
    for role in ("viewer", "manager"):
        other = member_of(sponsor, role)
        paying(other)
        before = list(CreditEntry.objects.values())
        assert_problem(transfer(other, sponsor, 1), 403, "permission-denied")
    assert_problem(transfer(UserFactory.create(), sponsor, 1), 404, "not-found")
    for wrong in (0, -1, "1", 1.5, 2**53, None):
        assert_problem(transfer(owner, sponsor, wrong), 400, "invalid-request")
    assert_problem(transfer(owner, sponsor, 1, "a b"), 400, "invalid-request")
    too_much = transfer(owner, sponsor, paid + 1, key)
    assert_problem(too_much, 402, "sponsor-transfer-credits")
    assert (too_much.body["required"], too_much.body["available"]) == (paid + 1, paid)
    assert list(CreditEntry.objects.values()) == before
    assert not Transfer.objects.exists()
    # What was refused may be sent with the same key.
    assert transfer(owner, sponsor, paid, key).body["status"] == "moved"
    assert_problem(transfer(owner, sponsor, 1, key), 409, "sponsor-transfer-key")


def test_no_key_of_a_server_transfers(sponsor: Sponsor) -> None:
    owner = member_of(sponsor)
    paying(owner)
    key = call(owner, "post", f"/api/sponsors/{sponsor.slug}/keys", name="server", scopes=["manage"]).body[
        "secret"
    ]
    headers = {"Idempotency-Key": secrets.token_hex(8)}
    answer = Wallet(key, "198.51.100.7").post(path(sponsor), {"credits": 1}, **headers)
    assert_problem(answer, 403, "permission-denied")
    assert not Transfer.objects.exists()
