"""What strangers can burn by asking for profiles: each abuse is tried, and ends at its bound."""

import random
import secrets
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditEntry
from devstack.services.stack import Services
from gateway.common.errors import DomainError
from relay.errors import CreationKeyUsed, OriginUsed, RegistrationsUsed
from relay.models import Attempt, Loss, ProfileCreation, RelayTransaction
from relay.services import creations
from relay.services.creations import Request
from relay.services.fleet import losses
from sponsors.errors import CampaignCallsLimit, NoPolicy, SponsorBudgetUsed, VoucherRefused, WindowCallsLimit
from sponsors.models import Policy, Sponsor
from tests.relay import creating
from tests.relay.conftest import Settle
from tests.relay.creating import a_request, address_of, create, deployment_of, for_profiles
from tests.relay.services.test_vouchers import Issuer
from tests.relay.services.test_welcome_policy import welcoming
from tests.relay.sponsoring import account_of
from tests.relay.workers import assert_books_agree
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once

pytestmark = pytest.mark.django_db


def burned() -> int:
    """Return the wei that relayers have paid for deployments."""
    mined = Attempt.objects.filter(relay_transaction__deploys_profile=True, gas_used__isnull=False)
    return sum(
        (gas or 0) * (price or 0) for gas, price in mined.values_list("gas_used", "effective_gas_price_wei")
    )


def refused(sponsor: Sponsor, error: type[DomainError], request: Request | None = None) -> None:
    """Ask for one more profile, and see that nothing is stored, held or sent."""
    before = creating.all_rows()
    with pytest.raises(error):
        create(sponsor, request)
    assert creating.all_rows() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("bound", "error"),
    [
        ({"window_seconds": 86_400, "window_calls": 3}, WindowCallsLimit),
        ({"campaign_calls": 3}, CampaignCallsLimit),
    ],
)
def test_one_person_with_endless_keys_burns_the_number_of_an_open_policy(
    relayers: object, trusted: None, settle: Settle, bound: dict[str, int], error: type[DomainError]
) -> None:
    sponsor = make_sponsor(credits=1_000_000)
    for_profiles(sponsor, **bound)
    results = at_once([partial(create, sponsor, a_request()) for _ in range(16)])
    assert sum(isinstance(one, ProfileCreation) for one in results) == 3
    held = account_of(sponsor).held
    assert settle() == 3
    refused(sponsor, error)
    spent = 1_000_000 - account_of(sponsor).balance
    assert 0 < spent <= held
    (credit_wei,) = set(RelayTransaction.objects.values_list("credit_wei", flat=True))
    assert 0 < burned() <= spent * credit_wei
    assert_books_agree()


def test_a_policy_without_a_number_ends_at_the_sponsors_budget_of_the_day(
    relayers: object, trusted: None, settle: Settle
) -> None:
    sponsor = make_sponsor(credits=1_000_000)
    for_profiles(sponsor)
    create(sponsor)
    budget = account_of(sponsor).held * 2
    Sponsor.objects.filter(pk=sponsor.pk).update(day_credits=budget, month_credits=budget)
    create(sponsor)
    refused(sponsor, SponsorBudgetUsed)
    settle()
    assert 1_000_000 - account_of(sponsor).balance <= budget


def test_the_switch_of_the_policy_stops_the_next_request_and_repeats_of_earlier_ones_still_answer(
    relayers: object, trusted: None, settle: Settle
) -> None:
    sponsor, request = make_sponsor(), a_request()
    policy = for_profiles(sponsor).policy
    row = create(sponsor, request)
    Policy.objects.filter(pk=policy.pk).update(is_enabled=False)
    refused(sponsor, NoPolicy)
    assert create(sponsor, request) == row
    assert settle() == 1
    assert deployment_of(row).status == "Success"


def test_a_voucher_burns_one_profile_however_often_it_is_shown(
    services: Services, relayers: object, trusted: None
) -> None:
    issuer = Issuer(services, purpose="profiles")
    sponsor = issuer.sponsor
    wanted = a_request()
    voucher = issuer.voucher(wanted.profile(sponsor).addresses.profile)
    with_voucher = partial(Request, key=wanted.key, voucher=voucher)
    row = create(sponsor, with_voucher(controllers=wanted.controllers))
    for _ in range(3):
        assert create(sponsor, with_voucher(controllers=wanted.controllers)) == row
    refused(sponsor, CreationKeyUsed, with_voucher(controllers=[address_of("0x" + secrets.token_hex(32))]))
    # Another profile is none of the voucher's.
    refused(sponsor, VoucherRefused, a_request(voucher=voucher))
    assert (RelayTransaction.objects.count(), account_of(sponsor).open_holds) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_one_origin_burns_its_number_of_the_day_also_at_once(relayers: object, trusted: None) -> None:
    sponsor, origin = make_sponsor(credits=1_000_000), f"192.0.2.{random.randint(1, 254)}"
    for_profiles(sponsor, origin_calls=2)
    results = at_once([partial(create, sponsor, a_request(origin=origin)) for _ in range(8)])
    assert sum(isinstance(one, ProfileCreation) for one in results) == 2
    assert {type(one) for one in results if isinstance(one, Exception)} == {OriginUsed}
    refused(sponsor, OriginUsed, a_request(origin=origin))


def test_strangers_who_overtake_burn_a_quarter_of_the_hourly_budget_and_then_the_sponsors_credits(
    services: Services, relayers: object, trusted: None, settle: Settle, settings: Settings
) -> None:
    sponsor = make_sponsor()
    for_profiles(sponsor)
    costs, rows = [], []
    for number in range(3):
        if number == 1:
            # The first has used up all of it.
            settings.RELAY_LOSS_PER_HOUR_WEI = 4 * burned()
        request = a_request()
        rows.append(create(sponsor, request))
        creating.deploy_as_a_stranger(services, request, sponsor)
        assert settle() == 1
        costs.append(deployment_of(rows[-1]).real_cost)
    losses.settle_ended(now=timezone.now())
    assert [cost > 0 for cost in costs] == [False, True, True]
    lost = sum(
        lost_wei or 0 for lost_wei in Loss.objects.filter(kind="overtaken").values_list("lost_wei", flat=True)
    )
    assert 0 < lost <= settings.RELAY_LOSS_PER_HOUR_WEI // 4
    assert account_of(sponsor).balance == 100_000 - sum(costs)
    assert_books_agree()


def test_registrations_burn_no_gas_and_end_at_their_number_of_a_day(
    services: Services, relayers: object, trusted: None, settle: Settle, settings: Settings
) -> None:
    settings.SPONSOR_REGISTRATIONS_PER_DAY = 2
    payer, sponsor = make_sponsor(), make_sponsor()
    for_profiles(payer)
    made = [create(payer) for _ in range(3)]
    settle()
    register = partial(creations.register, sponsor=sponsor, now=timezone.now())
    before = burned(), CreditEntry.objects.count()
    rows = [register(profile=one.profile_address) for one in made[:2]]
    assert [register(profile=one.profile_address) for one in made[:2]] == rows
    stored = creating.all_rows()
    with pytest.raises(RegistrationsUsed):
        register(profile=made[2].profile_address)
    assert creating.all_rows() == stored
    assert (burned(), CreditEntry.objects.count()) == before


@pytest.mark.django_db(transaction=True)
def test_many_sponsors_burn_the_operators_number_of_the_day_and_each_its_own(
    relayers: object, trusted: None, settle: Settle
) -> None:
    operator = welcoming(window_calls=3, origin_calls=2)
    sponsors = [make_sponsor() for _ in range(4)]
    for sponsor in sponsors:
        make_policy(sponsor)
    for _ in range(2):
        create(sponsors[0], a_request(origin=secrets.token_hex(4)))
    refused(sponsors[0], OriginUsed, a_request(origin=secrets.token_hex(4)))
    asked = [partial(create, sponsor, a_request(origin=secrets.token_hex(4))) for sponsor in sponsors * 3]
    results = at_once(asked)
    assert sum(isinstance(one, ProfileCreation) for one in results) == 1
    assert ProfileCreation.objects.filter(sponsor=sponsors[0]).count() == 2
    assert settle() == 3
    assert 0 < 1_000_000 - account_of(operator).balance <= 90_000
    assert all(account_of(sponsor).balance == 100_000 for sponsor in sponsors)
    assert_books_agree()
