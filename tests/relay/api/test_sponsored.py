"""Sponsors on the wire: headers of execute, members of prepare, of LSP-15's body and of the status."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from sponsors.models import Sponsor, SponsoredCall
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.conftest import Settle
from tests.relay.sponsoring import account_of, all_rows
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE, LSP15, STATUS = "/api/relay/execute", "/api/lsp15/execute", "/api/relay/transactionStatus"


@pytest.fixture
def user(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit."""
    return open_account(profile, credits=1)


@pytest.fixture
def sponsor(user: User) -> Sponsor:
    """A sponsor that pays for every call."""
    sponsor = make_sponsor()
    make_policy(sponsor)
    return sponsor


def test_a_newcomers_first_call_is_paid_by_the_sponsor_in_the_header(
    wallet: Wallet, new_call: Callable[..., RelayCall], sponsor: Sponsor, settle: Settle
) -> None:
    body = execute_body(new_call())
    assert wallet.post(EXECUTE, body).body["code"] == "insufficient-credits"
    response = wallet.post(EXECUTE, body, **{"Relay-Sponsor": sponsor.slug})
    assert response.status == 200, response.body
    assert settle() == 1
    status = wallet.post(STATUS, {"transactionHash": response.body["transactionHash"]}).body
    shown = {
        name: status[name] for name in ("status", "creditsUsed", "creditsBefore", "creditsAfter", "paidBy")
    }
    assert shown == {
        "status": "Success",
        "creditsUsed": 0,
        "creditsBefore": 1,
        "creditsAfter": 1,
        "paidBy": sponsor.slug,
    }
    assert account_of(sponsor).balance < 100_000
    page = wallet.send("get", "/api/user/transactions").body
    [listed] = page["results"]
    assert (listed["paidBy"], listed["real_cost"], listed["credits_after"]) == (sponsor.slug, 0, 1)


def test_a_refusal_names_the_rule_and_the_policies(
    wallet: Wallet, new_call: Callable[..., RelayCall], user: User
) -> None:
    sponsor = make_sponsor()
    version = make_policy(sponsor, call_credits=1)
    before = all_rows()
    response = wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": sponsor.slug})
    assert (response.status, response.body["code"]) == (402, "sponsor-limit-call")
    assert (response.body["limit"], response.body["fits"]) == (1, 1)
    assert (response.body["policy"], len(response.body["policies"])) == (version.policy.name, 1)
    assert all_rows() == before


@pytest.mark.parametrize("period", ["day", "month"])
def test_a_call_beyond_the_sponsors_budget_is_refused_with_what_fits_and_when(
    wallet: Wallet, new_call: Callable[..., RelayCall], profile: Profile, sponsor: Sponsor, period: str
) -> None:
    limits = {"day_credits": 10**9, "month_credits": 10**9, f"{period}_credits": 1}
    Sponsor.objects.filter(pk=sponsor.pk).update(**limits)
    before = all_rows()
    response = wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": sponsor.slug})
    assert (response.status, response.body["code"]) == (402, "sponsor-budget")
    shown = {name: response.body[name] for name in ("sponsor", "period", "limit", "used", "fits")}
    assert shown == {"sponsor": sponsor.slug, "period": period, "limit": 1, "used": 0, "fits": 1}
    now = timezone.now().astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    ends = {
        "day": midnight + timedelta(days=1),
        "month": (midnight.replace(day=28) + timedelta(days=4)).replace(day=1),
    }
    assert datetime.fromisoformat(response.body["resets"]) == ends[period]
    assert all_rows() == before
    draft = {"transaction": {"to": profile.controller.address}, "sponsor": sponsor.slug}
    prepared = wallet.post("/api/relay/prepare", {**draft, "controller": profile.controller.address})
    assert prepared.body["sponsorRefusal"]["code"] == "sponsor-budget"


@pytest.mark.parametrize(
    "headers",
    [
        {"Relay-Sponsor-Fallback": "nobody"},
        {"Relay-Sponsor": "x" * 41},
        {"Relay-Sponsor": ""},
        {"Relay-Sponsor-Voucher": ""},
    ],
)
def test_invalid_headers_are_refused(
    wallet: Wallet, new_call: Callable[..., RelayCall], headers: dict[str, str]
) -> None:
    response = wallet.post(EXECUTE, execute_body(new_call()), **headers)
    assert (response.status, response.body["code"]) == (400, "invalid-request")


def test_prepare_shows_the_sponsors_part(wallet: Wallet, profile: Profile, sponsor: Sponsor) -> None:
    draft = {"transaction": {"to": profile.controller.address}, "sponsor": sponsor.slug}
    body = {**draft, "controller": profile.controller.address}
    response = wallet.post("/api/relay/prepare", body)
    assert response.status == 200, response.body
    assert response.body["refusals"] == []
    shown = response.body["sponsor"]
    assert (shown["name"], shown["userCredits"]) == (sponsor.slug, 0)
    assert shown["credits"] == response.body["highestCost"] == response.body["quote"]["cost"]
    assert response.body["sponsorRefusal"] is None


def test_the_body_of_lsp15_may_name_a_sponsor(
    wallet: Wallet, new_call: Callable[..., RelayCall], profile: Profile, sponsor: Sponsor
) -> None:
    transaction = execute_body(new_call())["transaction"]
    body = {"address": profile.profile_address, "transaction": transaction, "sponsor": sponsor.slug}
    wallet.token = None
    response = wallet.post(LSP15, body)
    assert response.status == 200, response.body
    assert SponsoredCall.objects.count() == 1
