"""First credits of new profiles: from the sponsor's account to the profile's, once, undone with their deployment."""

import random
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.exceptions import ValidationError
from django.db.models import F
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditAccount, CreditEntry, CreditHold, EntrySource, ExpiringLot, HomeCredits
from credits.services import causes, expiry, holds
from credits.services.entries import Posting, post_all
from devstack.services.stack import Services
from gateway.common.errors import DomainError
from relay.models import ProfileCreation
from relay.services import erasure
from sponsors.errors import CallLimit, CampaignLimit, SponsorBudgetUsed, SponsorWithoutCredits
from sponsors.models import FirstCredits, Policy, PolicyVersion, Sponsor, SponsoredCall
from sponsors.services import first_credits, holding
from tests.credits.causes import causeless
from tests.database import rows_of
from tests.relay import creating
from tests.relay.chain import Chain
from tests.relay.conftest import Settle
from tests.relay.creating import a_request, create, deployment_of, for_profiles
from tests.relay.sponsoring import account_of, hold_of, used
from tests.relay.two_chains import settings_of
from tests.relay.workers import assert_books_agree, resend
from tests.sponsors.sponsorships import make_sponsor
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db
_GIFT = random.randint(100, 9_000)
_DAYS = random.randint(1, 365)


@pytest.fixture
def sponsor(relayers: object, trusted: None) -> Sponsor:
    """A sponsor whose policy gives each new profile first credits."""
    sponsor = make_sponsor()
    for_profiles(sponsor, first_credits=_GIFT, first_days=_DAYS, first_chain_ids=[77])
    return sponsor


def _account(row: ProfileCreation) -> CreditAccount:
    return CreditAccount.objects.get(user_id=row.user_id)


def _entries(account: CreditAccount) -> list[tuple[str, int]]:
    """Return the entries of first credits and their reversals, oldest first."""
    rows = CreditEntry.objects.filter(account=account, source__in=["FIRST_CREDITS", "RELAY_REVERSAL"])
    return list(rows.order_by("account_version").values_list("source", "amount"))


def _no_differences() -> None:
    assert_books_agree()
    assert (
        causeless(EntrySource.FIRST_CREDITS, EntrySource.RELAY_REVERSAL, EntrySource.RELAY_TRANSACTION) == []
    )
    rules = {finding["rule"] for finding in causes.find_differences()}
    assert rules <= {"an entry has a cause", "terms of a policy were approved"}, rules


def test_a_new_profile_gets_first_credits_from_its_sponsors_account_when_it_exists(
    sponsor: Sponsor, settle: Settle
) -> None:
    row = create(sponsor)
    held = hold_of(deployment_of(row)).amount + _GIFT
    assert (account_of(sponsor).held, used(sponsor)["campaign"]) == (held, (held, 1))
    assert _account(row).balance == 0
    before = timezone.now()
    assert settle() == 1

    cost = deployment_of(row).real_cost
    assert (account_of(sponsor).balance, account_of(sponsor).held) == (100_000 - cost - _GIFT, 0)
    assert (_account(row).balance, used(sponsor)["campaign"]) == (_GIFT, (cost + _GIFT, 1))
    assert _entries(account_of(sponsor)) == [("FIRST_CREDITS", -_GIFT)]
    assert _entries(_account(row)) == [("FIRST_CREDITS", _GIFT)]
    lot = ExpiringLot.objects.get()
    assert (lot.entry.account, lot.credits) == (_account(row), _GIFT)
    kept = HomeCredits.objects.get(account=_account(row))
    assert (kept.credits, kept.chain_ids, kept.expires_at) == (_GIFT, [77], lot.expires_at)
    assert timedelta(days=_DAYS) <= lot.expires_at - before < timedelta(days=_DAYS, hours=1)
    _no_differences()


def test_first_credits_expire_without_a_rule_about_given_credits(sponsor: Sponsor, settle: Settle) -> None:
    row = create(sponsor)
    settle()
    now = timezone.now()
    given = [(each.credits, each.source) for each in expiry.expiring_of(user=row.user, now=now)]
    assert given == [(_GIFT, "FIRST_CREDITS")]
    assert expiry.expire(now=now + timedelta(days=_DAYS, hours=-1)) == 0
    assert expiry.expire(now=now + timedelta(days=_DAYS, hours=1)) == 1
    assert _account(row).balance == 0
    assert causeless(EntrySource.CREDIT_EXPIRY) == []


def test_a_deployment_that_fails_gives_nothing_and_its_repeat_gives_once(
    sponsor: Sponsor, settle: Settle, services: Services
) -> None:
    request = a_request()
    row = create(sponsor, request)
    relayed = deployment_of(row)
    code = services.rpc.call("eth_getCode", relayed.key_manager_address, "latest")
    services.rpc.call("anvil_setCode", relayed.key_manager_address, "0xfe")
    assert settle() == 1
    services.rpc.call("anvil_setCode", relayed.key_manager_address, code)
    relayed.refresh_from_db()
    assert (relayed.status, _account(row).balance) == ("Failed", 0)
    assert (account_of(sponsor).balance, account_of(sponsor).held) == (100_000 - relayed.real_cost, 0)
    assert used(sponsor)["campaign"] == (relayed.real_cost, 1)

    again = create(sponsor, request)
    assert settle() == 1
    assert (_account(again).balance, _entries(_account(again))) == (_GIFT, [("FIRST_CREDITS", _GIFT)])
    _no_differences()


def test_first_credits_go_back_and_come_again_with_a_deployment_that_a_reorganisation_undoes(
    sponsor: Sponsor, chain: Chain, settle: Settle
) -> None:
    row = create(sponsor)
    assert settle() == 1
    paid = random.randint(1, _GIFT)
    charge = holds.place(user_id=row.user_id, credits=paid, key="charge")
    holds.close(costs={charge: paid})
    chain.reorganise(django_settings.CONFIRMATIONS)
    assert settle() == 0
    assert deployment_of(row).status == "Submitted"
    assert (account_of(sponsor).balance, _account(row).balance) == (100_000, -paid)
    assert not HomeCredits.objects.exists()
    assert account_of(sponsor).held == hold_of(deployment_of(row)).amount + _GIFT
    _no_differences()

    resend()
    assert settle() == 1
    cost = deployment_of(row).real_cost
    assert (account_of(sponsor).balance, _account(row).balance) == (100_000 - cost - _GIFT, _GIFT - paid)
    assert HomeCredits.objects.get().left == _GIFT - paid
    left = sum(each.credits for each in expiry.expiring_of(user=row.user, now=timezone.now()))
    assert left == _GIFT - paid
    there_and_back = [("FIRST_CREDITS", _GIFT), ("RELAY_REVERSAL", -_GIFT), ("FIRST_CREDITS", _GIFT)]
    assert _entries(_account(row)) == there_and_back
    _no_differences()


def test_a_profile_that_a_stranger_deploys_first_gets_first_credits_and_counts(
    sponsor: Sponsor, services: Services, settle: Settle
) -> None:
    request = a_request()
    row = create(sponsor, request)
    creating.deploy_as_a_stranger(services, request, sponsor)
    assert settle() == 1
    assert deployment_of(row).status == "ExecutedExternally"
    assert (account_of(sponsor).balance, _account(row).balance) == (100_000 - _GIFT, _GIFT)
    assert used(sponsor)["campaign"] == (_GIFT, 1)
    _no_differences()


def test_a_profile_that_had_first_credits_gets_none_after_its_account_was_erased(
    sponsor: Sponsor, settle: Settle
) -> None:
    first, second = create(sponsor), create(sponsor)
    settled = deployment_of(first)
    assert settle() == 2
    profile = first.profile_address
    erasure.erase(first.user)
    assert CreditHold.objects.filter(
        key=f"first:relay:erased:{FirstCredits.objects.earliest('pk').hold_id}"
    ).exists()
    assert profile not in str(rows_of(FirstCredits, CreditHold))

    # The deployment of a third profile stands for another one of the first profile.
    third = create(sponsor)
    promised = FirstCredits.objects.filter(call__hold=third.hold_id)
    promised.update(digest=None)
    first_credits.promise(profile=profile, hold_id=int(third.hold_id or 0))
    assert settle() == 1
    assert deployment_of(third).status == "Success"
    assert (_account(second).balance, _account(third).balance) == (_GIFT, 0)
    costs = [settled.real_cost, *(deployment_of(each).real_cost for each in (second, third))]
    settled.refresh_from_db()
    costs[0] = settled.real_cost
    assert (account_of(sponsor).balance, account_of(sponsor).held) == (100_000 - sum(costs) - 2 * _GIFT, 0)
    _no_differences()


def test_an_account_that_is_closed_meanwhile_gets_nothing(sponsor: Sponsor, settle: Settle) -> None:
    row = create(sponsor)
    User.objects.filter(pk=row.user_id).update(is_active=False)
    assert settle() == 1
    assert (_account(row).balance, account_of(sponsor).held) == (0, 0)
    assert account_of(sponsor).balance == 100_000 - deployment_of(row).real_cost


def _refused(sponsor: Sponsor, error: type[DomainError]) -> None:
    before = creating.all_rows() | rows_of(FirstCredits, SponsoredCall)
    with pytest.raises(error):
        create(sponsor)
    assert creating.all_rows() | rows_of(FirstCredits, SponsoredCall) == before


def test_first_credits_count_towards_every_limit_but_that_of_a_call(relayers: object, trusted: None) -> None:
    gift = 50_000
    terms = {"first_credits": gift, "first_days": 30}
    for funds, budget, limits, error in [
        (gift, None, {}, SponsorWithoutCredits),
        (200_000, gift, {}, SponsorBudgetUsed),
        (200_000, None, {"campaign_credits": gift}, CampaignLimit),
        (200_000, None, {"call_credits": 1}, CallLimit),
    ]:
        sponsor = make_sponsor(credits=funds)
        Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=budget, month_credits=budget)
        for_profiles(sponsor, **terms, **limits)
        _refused(sponsor, error)
    sponsor = make_sponsor()
    for_profiles(sponsor, **terms)
    create(sponsor)
    _refused(sponsor, SponsorWithoutCredits)


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_never_give_more_first_credits_than_the_campaign_has(
    relayers: object, trusted: None, settle: Settle
) -> None:
    sponsor = make_sponsor()
    for_profiles(sponsor, first_credits=20_000, first_days=7, campaign_credits=50_000)
    results = at_once([partial(create, sponsor, a_request()) for _ in range(12)])
    assert sum(isinstance(one, ProfileCreation) for one in results) == 2
    assert {one.code for one in results if isinstance(one, DomainError)} == {"sponsor-limit-campaign"}
    assert settle() == 2
    given = CreditEntry.objects.filter(source="FIRST_CREDITS", amount__gt=0)
    assert list(given.values_list("amount", flat=True)) == [20_000, 20_000]
    _no_differences()


def test_a_deployment_that_is_withdrawn_before_its_signature_leaves_no_first_credits(
    sponsor: Sponsor, settle: Settle
) -> None:
    row = create(sponsor)
    hold_id = int(row.hold_id or 0)
    holding.withdraw(hold_ids=[hold_id])
    assert not FirstCredits.objects.exists()
    assert (account_of(sponsor).held, account_of(sponsor).open_holds) == (0, 0)
    assert used(sponsor)["campaign"] == (0, 0)


def test_forged_first_credits_are_found(sponsor: Sponsor, settle: Settle) -> None:
    row = create(sponsor)
    settle()
    forged = Posting(row.user_id, 5, EntrySource.FIRST_CREDITS, "first:hold:1")
    post_all([forged])
    (finding,) = causeless(EntrySource.FIRST_CREDITS)
    assert finding["have"] == "FIRST_CREDITS 5"
    HomeCredits.objects.update(chain_ids=[78])
    FirstCredits.objects.update(digest=None)
    CreditHold.objects.filter(first_credits__isnull=False).update(amount=F("amount") + 1)
    rules = {each["rule"] for each in causes.find_differences()}
    assert rules >= {
        "first credits are given to a profile that gets them once",
        "home credits are first credits under their terms",
        "a hold of first credits is that of a new profile under terms that give them",
    }


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"first_credits": 5}, "both a number and days"),
        ({"first_days": 5}, "both a number and days"),
        ({"first_credits": 5, "first_days": 5, "purpose": "calls"}, "on the home chain gives first credits"),
        ({"first_credits": 5, "first_days": 5, "chain_id": 4242}, "on the home chain gives first credits"),
        ({"first_chain_ids": [4242]}, "Only first credits have further chains"),
        (
            {"first_credits": 5, "first_days": 5, "first_chain_ids": [7]},
            "has these chains besides home: 4242",
        ),
    ],
)
def test_terms_of_first_credits_that_contradict_each_other_are_refused(
    services: Services, settings: Settings, terms: dict[str, Any], why: str
) -> None:
    settings.CHAINS = {**settings.CHAINS, 4242: settings_of(4242)}
    policy = Policy.objects.create(sponsor=make_sponsor(), name="p")
    draft: dict[str, Any] = {"purpose": "profiles", "call_credits": 1, **terms}
    with pytest.raises(ValidationError, match=why):
        PolicyVersion(policy=policy, number=1, **draft).clean()
