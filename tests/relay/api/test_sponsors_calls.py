"""What a sponsor's owner sees of single calls and refusals: enough to explain each, and no profile of a refused one."""

import random
import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from devstack.world.profiles import Profile
from gateway.chain.config import home
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.models import RelayTransaction
from sponsors.models import RefusalCount, RefusedRequest, Sponsor
from sponsors.rules.calls import PROFILE
from sponsors.services import policies, refusals, self_service
from sponsors.services.paying import Bill
from sponsors.services.refusals import MOST_KEPT, Refused
from sponsors.services.verifiers import AskedCall
from tests.factories import UserFactory, random_address
from tests.relay.api.conftest import ApiResponse, Wallet, execute_body, wallet_of
from tests.relay.signing import set_data_payload
from tests.sponsors.api.callers import member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
EXECUTE, PREPARE = "/api/relay/execute", "/api/relay/prepare"
NewCall = Callable[..., RelayCall]
SET_DATA = "0x7f23690c"


class Refusal(DomainError):
    """Any refusal."""

    code, title, status = "sponsor-target", "Refused", 403


@pytest.fixture
def user(profile: Profile, open_account: Callable[..., User]) -> User:
    return open_account(profile, credits=1)


@pytest.fixture
def sponsor(user: User) -> Sponsor:
    return make_sponsor()


def read(sponsor: Sponsor, role: str = "owner", **query: str) -> ApiResponse:
    member = wallet_of(member_of(sponsor, role))
    return member.send("get", f"/api/sponsors/{sponsor.slug}/calls", data=query)


def refused_by(sponsor: Sponsor, user: User, key: str) -> Refused:
    """Return a call of the user that the sponsor does not pay."""
    asked = AskedCall(str(user.profile_address), random_address(), 42, "0x" + "00" * 32, set_data_payload())
    now = timezone.now()
    bill = Bill(user.pk, asked, random_address(), random.randrange(1, 500), 10**9, now)
    return Refused(sponsor.slug, Refusal("No.", policy="p"), key, bill, {})


def test_an_owner_sees_paid_and_refused_calls_newest_first_and_no_profile(
    wallet: Wallet, new_call: NewCall, profile: Profile, sponsor: Sponsor
) -> None:
    named = {"Relay-Sponsor": sponsor.slug}
    limited = make_policy(sponsor, call_credits=1, targets=[{"contract": PROFILE, "functions": []}])
    refused = wallet.post(EXECUTE, execute_body(new_call()), **named)
    assert refused.body["code"] == "sponsor-limit-call"
    paying = make_policy(sponsor, position=1)
    sent = wallet.post(EXECUTE, execute_body(new_call(channel=1)), **named)
    assert sent.status == 200, sent.body

    response = read(sponsor)
    assert response.status == 200, response.body
    paid, other = response.body["calls"]
    assert (paid["transactionHash"], paid["status"]) == (sent.body["transactionHash"], "Pending")
    assert (paid["policy"], paid["rule"], paid["requests"]) == (paying.policy.name, None, 1)
    assert (other["transactionHash"], other["status"]) == (None, None)
    assert (other["policy"], other["rule"]) == (limited.policy.name, "sponsor-limit-call")
    assert paid["chainId"] == other["chainId"] == home().id
    assert paid["actions"] == other["actions"] == [{"contract": PROFILE, "function": SET_DATA}]
    assert other["credits"] == RefusedRequest.objects.get().credits > 0
    assert profile.profile_address.lower() not in str(response.body).lower()
    assert read(sponsor, kind="paid").body["calls"] == [paid]
    assert read(sponsor, kind="refused").body["calls"] == [other]
    assert read(sponsor, kind="both").status == 400


@pytest.mark.parametrize("role", ["viewer", "manager"])
def test_only_owners_see_hashes_of_calls(sponsor: Sponsor, role: str) -> None:
    response = read(sponsor, role)
    assert (response.status, response.body["needs"]) == (403, "own")


def test_a_preparation_and_repeats_of_a_refused_call_are_one_row(
    wallet: Wallet, new_call: NewCall, profile: Profile, sponsor: Sponsor
) -> None:
    make_policy(sponsor, call_credits=1)
    call = new_call()
    transaction = {"abi": "0x" + call.payload.hex()}
    draft = {"transaction": transaction, "controller": profile.controller.address, "sponsor": sponsor.slug}
    prepared = wallet.post(PREPARE, draft)
    assert [one["code"] for one in prepared.body["refusals"]] == ["sponsor-limit-call"]
    for _ in range(2):
        wallet.post(EXECUTE, execute_body(call), **{"Relay-Sponsor": sponsor.slug})
    [row] = read(sponsor).body["calls"]
    assert (row["requests"], row["rule"]) == (3, "sponsor-limit-call")


def test_the_newest_refusals_of_each_sponsor_are_kept_however_many_there_are(sponsor: Sponsor) -> None:
    stranger, other, more = UserFactory.create(), make_sponsor(), random.randint(1, 9)
    now = timezone.now()
    kept_elsewhere = refused_by(other, stranger, secrets.token_hex(32))
    refusals.record([kept_elsewhere], now=now - timedelta(days=1))
    keys = [secrets.token_hex(32) for _ in range(MOST_KEPT + more)]
    half = len(keys) // 2
    for place, batch in enumerate((keys[:half], keys[half:])):
        refused = [refused_by(sponsor, stranger, key) for key in batch]
        refusals.record(refused, now=now + timedelta(seconds=place))
    kept = RefusedRequest.objects.filter(sponsor=sponsor)
    assert kept.count() == MOST_KEPT
    # The second batch is newer, so it is whole.
    assert set(keys[half:]) <= set(kept.values_list("key", flat=True))
    assert RefusedRequest.objects.get(sponsor=other).key == kept_elsewhere.key


@pytest.mark.django_db(transaction=True)
def test_refusals_at_the_same_moment_are_all_counted_and_stay_within_the_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sponsor, stranger, now = make_sponsor(), UserFactory.create(), timezone.now()
    shared = [secrets.token_hex(32) for _ in range(20)]

    def batch() -> None:
        keys = [*shared, *(secrets.token_hex(32) for _ in range(MOST_KEPT // 2))]
        random.shuffle(keys)
        refusals.record([refused_by(sponsor, stranger, key) for key in keys], now=now)

    threads = 6
    at_once([batch] * threads)
    # Rows that another batch was changing are deleted by the next one.
    later = refused_by(sponsor, stranger, secrets.token_hex(32))
    refusals.record([later], now=now + timedelta(seconds=1))
    kept = RefusedRequest.objects.filter(sponsor=sponsor)
    assert kept.count() == MOST_KEPT
    assert kept.filter(key=later.key).exists()
    counted = RefusalCount.objects.get(sponsor=sponsor).requests
    assert counted == threads * (len(shared) + MOST_KEPT // 2) + 1
    # An error, such as a deadlock, would only be logged.
    assert not [record for record in caplog.records if record.name == refusals.__name__]


def test_a_call_that_named_no_sponsor_shows_nothing_to_the_default_sponsor(
    wallet: Wallet, new_call: NewCall, sponsor: Sponsor
) -> None:
    policies.make_default(sponsor, is_default=True)
    make_policy(sponsor, call_credits=1)
    response = wallet.post(EXECUTE, execute_body(new_call()))
    assert (response.status, response.body["code"]) == (402, "insufficient-credits")
    assert read(sponsor).body["calls"] == []
    assert not RelayTransaction.objects.exists()


def test_a_deleted_account_leaves_no_refusal_and_no_hash(
    wallet: Wallet, new_call: NewCall, sponsor: Sponsor, user: User
) -> None:
    make_policy(sponsor)
    assert wallet.post(EXECUTE, execute_body(new_call()), **{"Relay-Sponsor": sponsor.slug}).status == 200
    stays = UserFactory.create()
    refusals.record(
        [refused_by(sponsor, one, secrets.token_hex(32)) for one in (user, stays)], now=timezone.now()
    )
    self_service.forget(user)
    RelayTransaction.objects.update(payload=b"")
    shown: list[dict[str, Any]] = read(sponsor).body["calls"]
    assert sorted((row["rule"] or "", row["transactionHash"]) for row in shown) == [
        ("", None),
        ("sponsor-target", None),
    ]
    assert RefusedRequest.objects.get().user == stays
