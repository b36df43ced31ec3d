"""What members of a sponsor see once calls were paid and refused; a month's files tie to the ledger to the credit."""

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from credits.models import CreditEntry
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from gateway.common.fields import checksum
from relay.models import RelayTransaction
from sponsors.models import RefusalCount, Sponsor
from tests.database import rewrite
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body, wallet_of
from tests.relay.conftest import Settle
from tests.relay.sponsoring import account_of
from tests.sponsors.api.callers import member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE, PREPARE = "/api/relay/execute", "/api/relay/prepare"


@pytest.fixture
def user(profile: Profile, open_account: Callable[..., User]) -> User:
    return open_account(profile, credits=1)


@pytest.fixture
def sponsor(user: User) -> Sponsor:
    return make_sponsor()


@pytest.fixture
def read(sponsor: Sponsor) -> Callable[..., ApiResponse]:
    """Return a function that reads a path of the sponsor as a viewer."""
    viewer = wallet_of(member_of(sponsor, "viewer"))
    return lambda path, **query: viewer.send("get", f"/api/sponsors/{sponsor.slug}/{path}", data=query)


def _export(sponsor: Sponsor, kind: str) -> list[dict[str, str]]:
    """Return the rows of this month's file."""
    viewer = wallet_of(member_of(sponsor, "viewer"))
    response = Client(REMOTE_ADDR=viewer.address).get(
        f"/api/sponsors/{sponsor.slug}/export",
        {"kind": kind, "month": f"{timezone.now():%Y-%m}"},
        headers={"Authorization": f"Bearer {viewer.token}"},
    )
    assert response["Content-Type"].startswith("text/csv")
    text = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(text)))


def test_figures_and_files_tie_to_the_ledger_to_the_credit(
    wallet: Wallet,
    new_call: Callable[..., RelayCall],
    profile: Profile,
    sponsor: Sponsor,
    settle: Settle,
    read: Callable[..., ApiResponse],
) -> None:
    policy = make_policy(sponsor, campaign_credits=90_000).policy
    response = wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": sponsor.slug})
    assert response.status == 200, response.body
    held = account_of(sponsor).held
    overview = read("overview").body
    assert (overview["balance"], overview["held"]) == (100_000, held)
    assert (overview["available"], overview["dailyUse"], overview["daysLeft"]) == (100_000 - held, 0, None)
    assert overview["rights"] == ["read", "simulate"]

    assert settle() == 1
    cost = RelayTransaction.objects.get().real_cost
    overview = read("overview").body
    assert (overview["balance"], overview["available"]) == (100_000 - cost, 100_000 - cost)
    # A day of use does not tell how long the credits last.
    assert (overview["dailyUse"], overview["daysLeft"]) == (cost, None)
    [shown] = read("policies").body["policies"]
    assert (shown["name"], shown["terms"]["campaignCredits"]) == (policy.name, 90_000)
    assert (shown["use"]["credits"], shown["use"]["calls"]) == (cost, 1)
    spend = read("spend").body
    assert spend["days"] == [{"day": f"{timezone.now():%Y-%m-%d}", "credits": cost, "calls": 1}]
    assert spend["policies"] == [{"policy": policy.name, "credits": cost, "calls": 1}]
    assert (spend["userCount"], spend["users"][0]["credits"]) == (1, cost)
    [contract] = read("contracts").body["contracts"]
    assert (contract["credits"], contract["calls"]) == (cost, 1)

    entries, [call] = _export(sponsor, "entries"), _export(sponsor, "calls")
    assert sum(int(row["credits"]) for row in entries) == account_of(sponsor).balance
    charge = CreditEntry.objects.get(account__sponsor=sponsor, amount__lt=0)
    assert (call["status"], int(call["credits"]), int(call["entry"])) == ("captured", cost, charge.pk)
    assert (int(call["heldCredits"]), call["policy"], call["version"]) == (held, policy.name, "1")
    assert call["user"] == spend["users"][0]["user"]
    assert profile.profile_address.lower() not in f"{spend} {entries} {call}".lower()


@pytest.mark.parametrize(("hours", "is_told"), [(7 * 24 - 1, False), (7 * 24 + 1, True)])
def test_a_week_of_use_tells_how_long_the_credits_last(
    wallet: Wallet,
    new_call: Callable[..., RelayCall],
    sponsor: Sponsor,
    settle: Settle,
    read: Callable[..., ApiResponse],
    hours: int,
    is_told: bool,
) -> None:
    make_policy(sponsor)
    wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": sponsor.slug})
    assert settle() == 1
    charges = CreditEntry.objects.filter(account__sponsor=sponsor, amount__lt=0)
    rewrite(charges, created_at=timezone.now() - timedelta(hours=hours))
    overview = read("overview").body
    assert overview["dailyUse"] > 0
    assert overview["daysLeft"] == (overview["available"] // overview["dailyUse"] if is_told else None)


@pytest.mark.parametrize("is_batch", [False, True])
def test_spend_names_the_contract_that_a_call_reaches(
    wallet: Wallet,
    profile: Profile,
    sponsor: Sponsor,
    read: Callable[..., ApiResponse],
    new_call: Callable[..., RelayCall],
    is_batch: bool,
) -> None:
    make_policy(sponsor)
    response = wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": sponsor.slug})
    assert response.status == 200, response.body
    target = checksum("0x" + "ab" * 20)
    selector = "31858452" if is_batch else "44c028fe"
    words = f"{0:064x}{int(target, 16):064x}{0:064x}{128:064x}{0:064x}"
    RelayTransaction.objects.update(payload=bytes.fromhex(selector + words))
    [contract] = read("contracts").body["contracts"]
    assert contract["contract"] == ("batch" if is_batch else target)


def test_refusals_are_counted_by_rule_and_day_for_prepare_and_execute(
    wallet: Wallet,
    new_call: Callable[..., RelayCall],
    profile: Profile,
    sponsor: Sponsor,
    read: Callable[..., ApiResponse],
) -> None:
    make_policy(sponsor, call_credits=1)
    assert read("refusals").body == {"refusals": []}
    named = {"Relay-Sponsor": sponsor.slug}
    for _ in range(2):
        assert wallet.post(EXECUTE, execute_body(new_call()), **named).body["code"] == "sponsor-limit-call"
    draft: dict[str, Any] = {"transaction": {"to": profile.controller.address}, "sponsor": sponsor.slug}
    response = wallet.post(PREPARE, {**draft, "controller": profile.controller.address})
    assert [one["code"] for one in response.body["refusals"]] == ["sponsor-limit-call"]
    Sponsor.objects.filter(pk=sponsor.pk).update(is_frozen=True)
    wallet.post(EXECUTE, execute_body(new_call()), **named)
    wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": "there-is-none"})
    assert read("refusals").body["refusals"] == [
        {"rule": "sponsor-limit-call", "requests": 3},
        {"rule": "sponsor-frozen", "requests": 1},
    ]
    assert set(RefusalCount.objects.values_list("day", flat=True)) == {timezone.now().date()}
