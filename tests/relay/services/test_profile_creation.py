"""Profiles that a sponsor's server asks for: deployed once, charged once, to the right payer."""

import secrets
from collections.abc import Callable
from functools import partial

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from eth_abi.abi import decode
from pytest_django import Settings

from credits.models import CreditHold
from devstack.services.stack import Services
from devstack.world.profiles import ProfilePlan
from gateway.chain.client import get_chain_client
from gateway.chain.lsp3 import PROFILE_KEY
from gateway.chain.lsp6 import ALL_PERMISSIONS
from gateway.common.errors import DomainError
from relay.errors import (
    CreationKeyUsed,
    CreationOff,
    DeploymentRefused,
    GasLimitExceeded,
    OriginMissing,
    OriginUsed,
)
from relay.models import Attempt, Loss, ProfileCreation, RelayTransaction
from relay.services import creations
from relay.services.creations import Request
from relay.services.fleet import losses
from signer.deployments import FACTORY, RECEIVER_DELEGATE, encode
from sponsors.errors import CampaignCallsLimit, PurposeNotSponsored, SponsorWithoutCredits, WindowCallsLimit
from sponsors.models import Sponsor
from tests.relay import creating
from tests.relay.chain import Chain
from tests.relay.conftest import Settle
from tests.relay.creating import a_key, a_request, all_rows, create, deployment_of, for_profiles
from tests.relay.signing import sign_call
from tests.relay.sponsoring import account_of, execute_sponsored, hold_of, used
from tests.relay.workers import assert_books_agree, resend
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once
from users.errors import UntrustedCode
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db


@pytest.fixture
def sponsor(relayers: object, trusted: None) -> Sponsor:
    """A sponsor that pays for new profiles."""
    sponsor = make_sponsor()
    for_profiles(sponsor)
    return sponsor


def test_a_created_profile_has_the_controllers_named_and_relays_its_first_call(
    sponsor: Sponsor, services: Services, settle: Settle
) -> None:
    key, uri = a_key(), bytes.fromhex("00008019f9b10020") + secrets.token_bytes(32) + b"ipfs://card"
    row = create(sponsor, a_request(key, metadata=uri))

    relayed = deployment_of(row)
    assert (relayed.deploys_profile, relayed.status, relayed.hold.amount) == (True, "Pending", 0)
    held = hold_of(relayed).amount
    assert (account_of(sponsor).held, creations.cost_of(row)) == (held, held)
    assert settle() == 1

    relayed.refresh_from_db()
    cost = relayed.real_cost
    assert (relayed.status, hold_of(relayed).captured_amount) == ("Success", cost)
    assert account_of(sponsor).balance == 100_000 - cost
    assert 0 < cost <= held
    assert used(sponsor)["campaign"] == (cost, 1)
    profile = creating.profile_of(row, key)
    state = get_chain_client().read_profile(
        profile=row.profile_address,
        controller=profile.controller.address,
        digest=bytes(32),
        signature=b"",
    )
    assert (state.owner, state.permissions) == (row.key_manager_address, ALL_PERMISSIONS)
    assert get_chain_client().read_data(profile=row.profile_address, key=PROFILE_KEY) == uri
    assert {one["address"] for one in row.controllers} == {profile.controller.address, RECEIVER_DELEGATE}

    make_policy(sponsor)
    call = sign_call(services=services, profile=profile)
    execute_sponsored(User.objects.get(profile_address=row.profile_address), call, sponsor)
    assert settle() == 1
    assert list(RelayTransaction.objects.order_by("pk").values_list("deploys_profile", "status")) == [
        (True, "Success"),
        (False, "Success"),
    ]
    assert_books_agree()


def test_the_same_request_again_is_the_same_profile(sponsor: Sponsor, settle: Settle) -> None:
    request = a_request()
    first = create(sponsor, request)
    assert create(sponsor, request) == first
    assert settle() == 1
    before = all_rows()
    assert create(sponsor, request) == first
    assert all_rows() == before


def test_a_controller_may_have_several_profiles_by_other_keys_and_sponsors(sponsor: Sponsor) -> None:
    key, other = a_key(), make_sponsor()
    for_profiles(other)
    same = a_request(key)
    rows = [create(sponsor, same), create(sponsor, a_request(key)), create(other, same)]
    assert len({row.profile_address for row in rows}) == 3
    assert [deployment_of(row).hold.sponsored.version.policy.sponsor for row in rows] == [
        sponsor,
        sponsor,
        other,
    ]


def test_a_key_that_names_another_profile_is_refused(sponsor: Sponsor) -> None:
    first = create(sponsor, a_request(key="once"))
    before = all_rows()
    with pytest.raises(CreationKeyUsed, match=first.profile_address):
        create(sponsor, a_request(key="once"))
    assert all_rows() == before


def test_a_profile_of_a_salt_and_data_has_the_address_that_the_factory_computes(
    sponsor: Sponsor, services: Services, settle: Settle
) -> None:
    by_salt = _by_salt(a_request())
    row = create(sponsor, by_salt)
    wanted = by_salt.profile(sponsor)
    returned = services.rpc.call(
        "eth_call",
        {"to": deployment_of(row).key_manager_address, "data": "0x" + encode(wanted.new.deployment).hex()},
        "latest",
    )
    addresses = decode(["address", "address"], bytes.fromhex(returned[2:]))
    assert addresses == (row.profile_address.lower(), row.key_manager_address.lower())
    assert settle() == 1
    assert deployment_of(row).status == "Success"


def _by_salt(request: Request) -> Request:
    """Return a request with salt and data for a profile with the same controllers."""
    deployment = request.profile(Sponsor(pk=1)).new.deployment
    return Request(key=secrets.token_hex(8), salt=secrets.token_bytes(32), data=deployment.module_data)


def test_two_sponsors_that_ask_for_the_same_salt_and_data_get_one_profile_paid_by_the_first(
    sponsor: Sponsor, settle: Settle
) -> None:
    request, other = _by_salt(a_request()), make_sponsor()
    for_profiles(other)
    rows = [create(sponsor, request), create(other, request)]
    assert settle() == 1
    assert len({row.hold_id for row in rows}) == 1
    assert account_of(sponsor).balance < 100_000 == account_of(other).balance
    assert create(other, request).profile_address == rows[0].profile_address
    assert_books_agree()


def _refused_without_a_trace(
    sponsor: Sponsor, kind: type[DomainError], request: Request | None = None
) -> DomainError:
    before = all_rows()
    with pytest.raises(kind) as refusal:
        create(sponsor, request)
    assert all_rows() == before
    return refusal.value


def test_a_policy_for_calls_pays_for_no_profile_and_one_for_profiles_for_no_call(
    user: User, new_call: Callable[..., object], trusted: None
) -> None:
    for_calls, of_profiles = make_sponsor(), make_sponsor()
    make_policy(for_calls)
    for_profiles(of_profiles)
    _refused_without_a_trace(for_calls, PurposeNotSponsored)
    before = all_rows()
    with pytest.raises(PurposeNotSponsored):
        execute_sponsored(user, new_call(), of_profiles)  # type: ignore[arg-type]
    assert all_rows() == before


@pytest.mark.parametrize(
    ("terms", "error"),
    [
        ({"campaign_calls": 1}, CampaignCallsLimit),
        ({"window_calls": 1, "window_seconds": 86_400}, WindowCallsLimit),
    ],
)
def test_a_policy_pays_for_as_many_profiles_as_it_says(
    relayers: object, trusted: None, terms: dict[str, int], error: type[DomainError]
) -> None:
    sponsor = make_sponsor()
    for_profiles(sponsor, **terms)
    create(sponsor)
    refusal = _refused_without_a_trace(sponsor, error)
    assert (refusal.members["limit"], refusal.members["used"]) == (1, 1)


def test_a_sponsor_without_credits_creates_nothing(relayers: object, trusted: None) -> None:
    sponsor = make_sponsor(credits=1)
    for_profiles(sponsor)
    _refused_without_a_trace(sponsor, SponsorWithoutCredits)


def test_implementations_that_staff_do_not_trust_are_not_deployed(sponsor: Sponsor) -> None:
    TrustedImplementation.objects.filter(kind="key-manager").update(is_active=False)
    _refused_without_a_trace(sponsor, UntrustedCode)


def test_an_operator_switches_creation_off_by_a_gas_limit_of_zero(
    sponsor: Sponsor, settings: Settings
) -> None:
    settings.RELAY_DEPLOYMENT_MAX_GAS = 0
    _refused_without_a_trace(sponsor, CreationOff)


@pytest.mark.parametrize("setting", ["RELAY_DEPLOYMENT_MAX_GAS", "RELAY_MAX_GAS"])
def test_a_deployment_that_needs_more_gas_than_the_operator_allows_is_refused(
    sponsor: Sponsor, settings: Settings, setting: str
) -> None:
    setattr(settings, setting, 300_000)
    refusal = _refused_without_a_trace(sponsor, DomainError)
    assert refusal.code in {DeploymentRefused.code, GasLimitExceeded.code}
    assert refusal.members["maximum"] == 300_000


def test_a_contract_that_deploys_elsewhere_than_the_factory_is_refused(
    sponsor: Sponsor, services: Services
) -> None:
    code = services.rpc.call("eth_getCode", FACTORY, "latest")
    # PUSH1 64, PUSH1 0, RETURN: two addresses of zero.
    services.rpc.call("anvil_setCode", FACTORY, "0x60406000f3")
    try:
        refusal = _refused_without_a_trace(sponsor, DeploymentRefused)
    finally:
        services.rpc.call("anvil_setCode", FACTORY, code)
    assert "not the factory" in refusal.detail


def test_a_profile_that_exists_already_costs_nothing_and_gets_an_account(
    sponsor: Sponsor, services: Services
) -> None:
    request = a_request()
    creating.deploy_as_a_stranger(services, request, sponsor)
    row = create(sponsor, request)
    assert (row.hold, account_of(sponsor).balance, account_of(sponsor).held) == (None, 100_000, 0)
    assert User.objects.get(profile_address=row.profile_address) == row.user
    assert create(sponsor, request) == row
    assert not Attempt.objects.exists()


def test_a_stranger_who_deploys_first_costs_the_sponsor_nothing_and_the_service_the_gas(
    sponsor: Sponsor, services: Services, settle: Settle
) -> None:
    request = a_request()
    row = create(sponsor, request)
    creating.deploy_as_a_stranger(services, request, sponsor)
    assert settle() == 1

    relayed = deployment_of(row)
    assert (relayed.status, relayed.failure_code, relayed.real_cost) == (
        "ExecutedExternally",
        "deployed-by-somebody-else",
        0,
    )
    assert (account_of(sponsor).balance, account_of(sponsor).held) == (100_000, 0)
    assert used(sponsor)["campaign"][0] == 0
    losses.settle_ended(now=timezone.now())
    mined, loss = Attempt.objects.get(), Loss.objects.get()
    assert (loss.kind, loss.lost_wei) == ("overtaken", mined.gas_used * mined.effective_gas_price_wei)  # type: ignore[operator]
    assert create(sponsor, request) == row
    assert_books_agree()


def test_a_sponsor_pays_for_overtaken_deployments_beyond_the_services_budget(
    sponsor: Sponsor, services: Services, settle: Settle, settings: Settings
) -> None:
    settings.RELAY_LOSS_PER_HOUR_WEI = 4
    request = a_request()
    row = create(sponsor, request)
    creating.deploy_as_a_stranger(services, request, sponsor)
    assert settle() == 1
    relayed = deployment_of(row)
    assert relayed.status == "ExecutedExternally"
    assert account_of(sponsor).balance == 100_000 - relayed.real_cost < 100_000
    assert not Loss.objects.filter(kind="overtaken").exists()
    assert_books_agree()


def test_a_deployment_that_a_reorganisation_undoes_is_mined_and_charged_again(
    sponsor: Sponsor, chain: Chain, settle: Settle
) -> None:
    row = create(sponsor)
    assert settle() == 1
    chain.reorganise(django_settings.CONFIRMATIONS)
    assert settle() == 0
    assert deployment_of(row).status == "Submitted"
    assert (account_of(sponsor).balance, account_of(sponsor).open_holds) == (100_000, 1)
    assert _resent(settle) == 1
    relayed = deployment_of(row)
    assert (relayed.status, account_of(sponsor).balance) == ("Success", 100_000 - relayed.real_cost)
    assert_books_agree()


def _resent(settle: Settle) -> int:

    resend()
    return settle()


def test_a_failed_deployment_is_charged_and_the_same_request_tries_again(
    sponsor: Sponsor, settle: Settle, services: Services, chain: Chain
) -> None:
    request = a_request()
    row = create(sponsor, request)
    relayed = deployment_of(row)
    # The factory is away while the block is made.
    code = services.rpc.call("eth_getCode", relayed.key_manager_address, "latest")
    services.rpc.call("anvil_setCode", relayed.key_manager_address, "0xfe")
    assert settle() == 1
    services.rpc.call("anvil_setCode", relayed.key_manager_address, code)
    relayed.refresh_from_db()
    assert (relayed.status, relayed.failure_code) == ("Failed", "deployment-reverted")
    spent = 100_000 - account_of(sponsor).balance
    assert spent == relayed.real_cost > 0

    again = create(sponsor, request)
    assert (again.pk, again.profile_address) == (row.pk, row.profile_address)
    assert settle() == 1
    assert deployment_of(again).status == "Success"
    assert RelayTransaction.objects.count() == 2
    assert_books_agree()


@pytest.mark.django_db(transaction=True)
def test_equal_requests_at_once_are_one_profile_and_one_charge_at_the_last_place(
    relayers: object, trusted: None, settle: Settle
) -> None:
    sponsor, request = make_sponsor(), a_request()
    for_profiles(sponsor, campaign_calls=1)
    results = at_once([partial(create, sponsor, request)] * 64)
    assert len({one.pk for one in results if isinstance(one, ProfileCreation)}) == 1
    assert all(isinstance(one, ProfileCreation) for one in results), results
    assert CreditHold.objects.filter(account__sponsor=sponsor).count() == 1
    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_never_exceed_the_last_place_of_a_campaign(
    relayers: object, trusted: None, settle: Settle
) -> None:
    sponsor = make_sponsor()
    for_profiles(sponsor, campaign_calls=2)
    create(sponsor)
    results = at_once([partial(create, sponsor, a_request()) for _ in range(64)])
    created = [one for one in results if isinstance(one, ProfileCreation)]
    refused = {one.code for one in results if isinstance(one, DomainError)}
    assert (len(created), refused) == (1, {"sponsor-limit-campaign-calls"})
    assert (User.objects.exclude(profile_address=None).count(), used(sponsor)["campaign"][1]) == (2, 2)
    assert settle() == 2


def test_a_policy_pays_for_as_many_profiles_of_an_origin_as_it_says(relayers: object, trusted: None) -> None:
    sponsor, origin = make_sponsor(), secrets.token_hex(6)
    for_profiles(sponsor, origin_calls=2)
    request = a_request(origin=origin)
    first = create(sponsor, request)
    create(sponsor, a_request(origin=origin))
    refusal = _refused_without_a_trace(sponsor, OriginUsed, a_request(origin=origin))
    assert refusal.members["limit"] == 2
    assert 0 < (refusal.retry_after or 0) <= 86_400
    assert create(sponsor, request) == first
    _refused_without_a_trace(sponsor, OriginMissing)
    assert origin not in str(list(ProfileCreation.objects.values()))
    create(sponsor, a_request(origin=secrets.token_hex(6)))


@pytest.mark.django_db(transaction=True)
def test_requests_of_an_origin_at_once_never_exceed_its_number(relayers: object, trusted: None) -> None:
    sponsor = make_sponsor()
    for_profiles(sponsor, origin_calls=1)
    results = at_once([partial(create, sponsor, a_request(origin="203.0.113.7")) for _ in range(12)])
    assert sum(isinstance(one, ProfileCreation) for one in results) == 1
    assert {one.code for one in results if isinstance(one, DomainError)} == {"sponsor-limit-origin"}
    assert CreditHold.objects.filter(account__sponsor=sponsor).count() == 1


@pytest.mark.django_db(transaction=True)
def test_registrations_at_once_never_exceed_the_number_of_a_day(
    sponsor: Sponsor, services: Services, settings: Settings
) -> None:
    settings.SPONSOR_REGISTRATIONS_PER_DAY = 1
    profiles = services.world.create_profiles(*[ProfilePlan()] * 8)
    results = at_once(
        [
            partial(creations.register, sponsor=sponsor, profile=one.profile_address, now=timezone.now())
            for one in profiles
        ]
    )
    assert sum(isinstance(one, ProfileCreation) for one in results) == 1
    assert User.objects.filter(profile_address__in=[one.profile_address for one in profiles]).count() == 1
