"""The operator's welcome policy pays for new profiles that their sponsors do not pay for, within bounds of a day."""

import random
import secrets
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from credits.models import CreditAccount, CreditHold
from devstack.services.stack import Services
from gateway.common.errors import DomainError
from relay.errors import OriginUsed
from relay.models import ProfileCreation
from relay.queries.creations import figures_of
from relay.services import creations
from sponsors.errors import PurposeNotSponsored, SponsorFrozen
from sponsors.models import Policy, PolicyVersion, RefusalCount, Sponsor, SponsoredCall, UsedVoucher
from sponsors.queries.figures import since_of
from sponsors.services import policies
from tests.database import rows_of
from tests.relay.conftest import Settle
from tests.relay.creating import a_request, all_rows, create, deployment_of, for_profiles
from tests.relay.services.test_vouchers import Issuer
from tests.relay.sponsoring import account_of, used
from tests.relay.workers import assert_books_agree
from tests.sponsors.api.callers import call, member_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once

pytestmark = pytest.mark.django_db
_BOUNDS = {"window_seconds": 86_400, "window_calls": 50, "window_credits": 90_000, "origin_calls": 20}


@pytest.fixture
def asking(relayers: object, trusted: None) -> Sponsor:
    """A sponsor with a policy for calls alone."""
    sponsor = make_sponsor()
    make_policy(sponsor)
    return sponsor


def welcoming(**terms: Any) -> Sponsor:
    """Return the default sponsor, with a welcome policy."""
    sponsor = make_sponsor(credits=1_000_000)
    policies.make_default(sponsor, is_default=True)
    make_policy(sponsor, **{"purpose": "welcome", **_BOUNDS, **terms})
    return sponsor


def _refused(sponsor: Sponsor, error: type[DomainError]) -> DomainError:
    before = all_rows() | rows_of(SponsoredCall)
    with pytest.raises(error) as refusal:
        create(sponsor)
    assert all_rows() | rows_of(SponsoredCall) == before
    return refusal.value


def test_the_welcome_policy_pays_for_a_profile_and_its_first_credits_where_the_sponsor_does_not(
    asking: Sponsor, settle: Settle
) -> None:
    gift = random.randint(1, 9_000)
    operator = welcoming(first_credits=gift, first_days=30)
    row = create(asking)
    assert (creations.payer_of(row), creations.cost_of(row)) == (operator.slug, 0)
    assert settle() == 1
    cost = deployment_of(row).real_cost
    assert (account_of(asking).balance, account_of(operator).balance) == (100_000, 1_000_000 - cost - gift)
    assert CreditAccount.objects.get(user_id=row.user_id).balance == gift
    assert used(operator)["window"] == (cost + gift, 1)
    figures = figures_of(asking, since=since_of(1, now=timezone.now()))
    assert (figures.created, figures.credits) == (1, 0)
    assert not RefusalCount.objects.exists()
    assert_books_agree()


def test_the_sponsors_own_policy_pays_first(asking: Sponsor) -> None:
    welcoming()
    for_profiles(asking)
    assert creations.payer_of(create(asking)) == asking.slug


@pytest.mark.parametrize("why", ["no default", "own profiles alone", "switched off", "frozen", "no credits"])
def test_without_a_welcome_policy_the_refusal_of_the_sponsor_stands(asking: Sponsor, why: str) -> None:
    operator = welcoming(**({"purpose": "profiles"} if why == "own profiles alone" else {}))
    changes = {"no default": {"is_default": False}, "frozen": {"is_frozen": True}}.get(why)
    if changes:
        Sponsor.objects.filter(pk=operator.pk).update(**changes)
    Policy.objects.filter(sponsor=operator).update(is_enabled=why != "switched off")
    if why == "no credits":
        CreditAccount.objects.filter(sponsor=operator).update(held=999_999, open_holds=1)
    refusal = _refused(asking, PurposeNotSponsored)
    assert len(refusal.members["policies"]) == 1
    counted = RefusalCount.objects.values_list("sponsor__slug", "rule", "requests")
    assert list(counted) == [(asking.slug, "sponsor-purpose", 1)]


def test_a_frozen_sponsor_gets_no_welcome(asking: Sponsor) -> None:
    welcoming()
    policies.freeze(asking, is_frozen=True)
    _refused(asking, SponsorFrozen)


def test_a_sponsor_gets_its_number_of_a_day_whatever_origins_it_names(asking: Sponsor) -> None:
    welcoming(origin_calls=2)
    other = make_sponsor()
    first = a_request(origin=secrets.token_hex(4))
    rows = [create(asking, first), create(asking, a_request(origin=secrets.token_hex(4)))]
    before = all_rows()
    with pytest.raises(OriginUsed):
        create(asking, a_request(origin=secrets.token_hex(4)))
    assert all_rows() == before
    assert create(asking, first) == rows[0]
    create(other)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("bound", "rule"),
    [
        ({"window_calls": 3}, "sponsor-limit-window-calls"),
        ({"window_credits": 50_000}, "sponsor-limit-window"),
    ],
)
def test_requests_of_many_sponsors_at_once_never_exceed_the_bounds_of_a_day(
    relayers: object, trusted: None, bound: dict[str, int], rule: str
) -> None:
    operator = welcoming(first_credits=20_000, first_days=1, **bound)
    sponsors = [make_sponsor() for _ in range(12)]
    for sponsor in sponsors:
        for_profiles(sponsor, call_credits=1)
    results = at_once([partial(create, sponsor) for sponsor in sponsors])
    created = sum(isinstance(one, ProfileCreation) for one in results)
    assert {one.code for one in results if isinstance(one, DomainError)} == {"sponsor-limit-call"}
    held = CreditHold.objects.filter(account__sponsor=operator, status="HELD")
    most = sum(held.values_list("amount", flat=True))
    # Two gifts of 20,000 credits and their gas fit into 50,000.
    assert created == (2 if "window_credits" in bound else 3)
    assert (most, created) == used(operator)["window"]
    assert RefusalCount.objects.filter(rule="sponsor-limit-call").count() == 12 - created


def test_a_welcome_by_voucher_takes_one_of_the_operator_for_each_profile(
    asking: Sponsor, services: Services
) -> None:
    issuer = Issuer(services, purpose="welcome", **_BOUNDS)
    policies.make_default(issuer.sponsor, is_default=True)
    _refused(asking, PurposeNotSponsored)
    wanted = a_request()
    voucher = issuer.voucher(wanted.profile(asking).addresses.profile)
    row = create(asking, a_request_like(wanted, voucher))
    assert creations.payer_of(row) == issuer.sponsor.slug
    assert UsedVoucher.objects.get().call.hold_id == row.hold_id


def a_request_like(request: creations.Request, voucher: Any) -> creations.Request:
    """Return the same request with a voucher."""
    return creations.Request(key=request.key, controllers=request.controllers, voucher=voucher)


@pytest.mark.parametrize("missing", ["window_calls", "window_credits", "origin_calls", "a day"])
def test_terms_without_a_bound_of_a_day_are_refused_by_the_form_and_the_database(missing: str) -> None:
    terms = {**_BOUNDS, "window_seconds": 3_600} if missing == "a day" else {**_BOUNDS, missing: None}
    sponsor = make_sponsor()
    with pytest.raises(IntegrityError, match="sponsors_policyversion_welcome"), transaction.atomic():
        make_policy(sponsor, purpose="welcome", **terms)
    policy = Policy.objects.create(sponsor=sponsor, name="w")
    draft: dict[str, Any] = {"purpose": "welcome", "call_credits": 1, **terms}
    with pytest.raises(ValidationError, match="Give a window of 86400 seconds"):
        PolicyVersion(policy=policy, number=1, **draft).clean()


def test_an_owner_cannot_write_a_welcome_policy(asking: Sponsor) -> None:
    Sponsor.objects.filter(pk=asking.pk).update(day_credits=9, month_credits=9)
    owner = member_of(asking)
    before = rows_of(PolicyVersion)
    terms = {
        "purpose": "welcome",
        "callCredits": 1,
        "windowSeconds": 86_400,
        "windowCalls": 1,
        "windowCredits": 1,
    }
    response = call(owner, "put", f"/api/sponsors/{asking.slug}/policies/w", **terms, originCalls=1)
    assert (response.status, rows_of(PolicyVersion)) == (400, before)
