"""What an attack costs a sponsor: never more than its policy's bounds, and never anybody else."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from credits.queries import balance_of
from devstack.services.stack import Services
from devstack.world.deployer import Call
from devstack.world.profiles import Profile
from devstack.world.test_contracts import FLIP
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.models import RelayTransaction
from relay.services.accepting import acceptance
from relay.services.accepting.calls import SubmittedCall
from sponsors.errors import CampaignLimit, UserCallsLimit
from sponsors.models import SponsoredCall
from sponsors.services import policies
from tests.relay.attacks import deploy_burner
from tests.relay.conftest import Refused, Settle
from tests.relay.signing import execute_payload, sign_call
from tests.relay.sponsoring import account_of, execute_sponsored, hold_of, row_of, used
from tests.relay.workers import assert_books_agree
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]


@pytest.fixture
def newcomer(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit."""
    return open_account(profile, 1)


def test_a_target_that_burns_all_gas_after_acceptance_costs_the_sponsor_one_hold(
    services: Services, newcomer: User, new_call: NewCall, settle: Settle
) -> None:
    sponsor, burner = make_sponsor(), deploy_burner(services)
    version = make_policy(sponsor, user_calls=1)
    row = row_of(execute_sponsored(newcomer, new_call(payload=execute_payload(burner)), sponsor))
    services.world.deployer.send([Call(burner, FLIP, gas=100_000)])
    held = hold_of(row).amount

    assert settle() == 1

    row.refresh_from_db()
    assert row.status == RelayTransaction.Status.FAILED
    lost = 100_000 - account_of(sponsor).balance
    assert 0 < lost <= held <= version.call_credits
    # It counts towards the limits like any other call, so that it is not repeated without end.
    assert used(sponsor)["campaign"] == (lost, 1)
    assert balance_of(newcomer) == (1, 0, 1)
    with pytest.raises(UserCallsLimit):
        execute_sponsored(newcomer, new_call(channel=5), sponsor)
    assert_books_agree()


def test_new_profiles_cost_a_campaign_its_credits_however_many_there_are(
    services: Services,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
    newcomer: User,
    new_call: NewCall,
    refused: Refused,
) -> None:
    sponsor = make_sponsor()
    since = timezone.now() - timedelta(days=1)
    first = make_policy(sponsor, profiles="new", new_since=since, user_calls=1)
    one = hold_of(row_of(execute_sponsored(newcomer, new_call(), sponsor))).amount
    # What is left pays for one more call, which may cost a little more than the first.
    terms = {"profiles": "new", "new_since": since, "user_calls": 1, "campaign_credits": one * 5 // 2}
    new_version(first.policy, **terms)
    outcomes = []
    for _ in range(3):
        profile = create_profile()
        user = open_account(profile, 1)
        call = sign_call(services=services, profile=profile)
        try:
            outcomes.append(execute_sponsored(user, call, sponsor)[:2])
        except DomainError as refusal:
            outcomes.append(refusal.code)
    assert outcomes == ["0x", "sponsor-limit-campaign", "sponsor-limit-campaign"]
    assert account_of(sponsor).held <= one * 5 // 2


def test_calls_in_flight_keep_their_version_and_count_towards_the_next_one(
    newcomer: User, new_call: NewCall, settle: Settle, refused: Refused
) -> None:
    sponsor = make_sponsor()
    old = make_policy(sponsor, share_percent=100)
    row = row_of(execute_sponsored(newcomer, new_call(), sponsor))
    held = hold_of(row).amount
    new_version(old.policy, campaign_credits=held)
    with refused(CampaignLimit):
        execute_sponsored(newcomer, new_call(channel=3), sponsor)
    policies.enable(old.policy, is_enabled=False)
    policies.freeze(sponsor, is_frozen=True)

    assert settle() == 1

    row.refresh_from_db()
    assert SponsoredCall.objects.get().version == old
    assert account_of(sponsor).balance == 100_000 - row.real_cost
    assert used(sponsor)["campaign"] == (row.real_cost, 1)
    assert_books_agree()


def test_a_version_that_changes_while_a_call_is_accepted_decides_about_it(
    newcomer: User, new_call: NewCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    sponsor = make_sponsor()
    old = make_policy(sponsor)
    accept, changed = acceptance.accept, list[int]()

    def change_before(calls: list[SubmittedCall], **options: Any) -> None:
        if not changed:
            changed.append(
                new_version(old.policy, call_credits=1, campaign_credits=secrets.randbelow(9) + 1).pk
            )
        accept(calls, **options)

    monkeypatch.setattr(acceptance, "accept", change_before)
    with pytest.raises(DomainError) as refusal:
        execute_sponsored(newcomer, new_call(), sponsor)
    assert (refusal.value.code, refusal.value.members["policy"]) == ("sponsor-limit-call", old.policy.name)
    assert not SponsoredCall.objects.exists()
    assert account_of(sponsor).held == 0
