"""Ownership of key managers and trust in code: refusals before anything is stored."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone
from eth_abi.abi import encode
from pytest_django import DjangoAssertNumQueries, Settings

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.client import get_chain_client
from gateway.chain.contracts import ACCEPT_OWNERSHIP, TRANSFER_OWNERSHIP
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import get_signer
from relay.errors import ForeignKeyManager, GasLimitExceeded, KeyManagerNotFound, KeyManagerNotOwner
from relay.models import RelayTransaction
from relay.services.accepting import gas_limits, preparation
from relay.services.accepting.calls import Caller
from relay.services.accepting.preparation import Draft
from signer.contracts import code_hash
from tests.factories import random_address
from tests.relay.callers import execute
from tests.relay.chain import Chain, FaultyClient
from tests.relay.conftest import Refused
from tests.relay.signing import set_data_payload, sign_call
from users.errors import UntrustedCode
from users.models import TrustedImplementation, User

pytestmark = pytest.mark.django_db
Kind = TrustedImplementation.Kind


def claim(services: Services, profile: Profile, key_manager: str) -> RelayCall:
    """Sign a call for another key manager than the profile's, as a well-behaved wallet would."""
    return sign_call(
        services=services, profile=replace(profile, key_manager_address=key_manager), relay_nonce=0
    )


def test_an_address_without_code_is_not_a_key_manager(
    services: Services, profile: Profile, user: User, refused: Refused
) -> None:
    for address in (random_address(), get_signer().addresses()[0]):
        refusal = refused.call(KeyManagerNotFound, user, claim(services, profile, address))
        assert (refusal.status, address in refusal.detail) == (422, True)


def test_a_contract_without_a_target_is_not_a_key_manager(
    services: Services, profile: Profile, user: User, refused: Refused
) -> None:
    refused.call(KeyManagerNotFound, user, claim(services, profile, profile.profile_address))


def test_another_users_key_manager_is_refused(
    services: Services, profile: Profile, create_profile: Callable[..., Profile], user: User, refused: Refused
) -> None:
    victim = create_profile()
    refusal = refused.call(ForeignKeyManager, user, sign_call(services=services, profile=victim))
    assert refusal.members == {"target": victim.profile_address}


def test_a_key_manager_that_claims_the_users_profile_without_owning_it_is_refused(
    services: Services, profile: Profile, user: User, refused: Refused
) -> None:
    refusal = refused.call(
        KeyManagerNotOwner,
        user,
        claim(services, profile, services.world.deploy_stray_key_manager(profile.profile_address)),
    )
    assert refusal.members == {"owner": profile.key_manager_address}


def test_a_contract_of_unknown_code_is_refused_as_profile_and_as_key_manager(
    services: Services,
    profile: Profile,
    user: User,
    open_account: Callable[..., User],
    refused: Refused,
) -> None:
    impostor = services.world.deploy_impostor()
    call = claim(services, profile, impostor)
    refused.call(ForeignKeyManager, user, call)

    its_user = open_account(replace(profile, profile_address=impostor))
    refused.call(UntrustedCode, its_user, call)


def test_nothing_but_the_two_codes_of_a_call_need_be_trusted(
    services: Services, user: User, new_call: Callable[..., RelayCall]
) -> None:
    code = services.world.implementations
    TrustedImplementation.objects.exclude(address__in=[code.universal_profile, code.key_manager]).delete()
    execute(user=user, call=new_call(), now=timezone.now())
    assert RelayTransaction.objects.count() == 1


def test_a_working_profile_of_unknown_code_is_refused(
    services: Services, open_account: Callable[..., User], refused: Refused
) -> None:
    untrusted = services.world.deploy_untrusted_profile()
    user, call = open_account(untrusted), sign_call(services=services, profile=untrusted)
    refusal = refused.call(UntrustedCode, user, call)
    assert refusal.status == 403
    for member, address in (
        ("profileCode", untrusted.profile_address),
        ("keyManagerCode", untrusted.key_manager_address),
    ):
        code = get_chain_client().read_key_manager(key_manager=address).code
        assert refusal.members[member] == code_hash(code)


def test_code_that_is_deployed_whole_is_trusted_by_its_hash(
    services: Services, open_account: Callable[..., User]
) -> None:
    untrusted = services.world.deploy_untrusted_profile()
    user, call = open_account(untrusted), sign_call(services=services, profile=untrusted)
    for kind, address in (
        (Kind.PROFILE, untrusted.profile_address),
        (Kind.KEY_MANAGER, untrusted.key_manager_address),
    ):
        code = get_chain_client().read_key_manager(key_manager=address).code
        TrustedImplementation.objects.create(kind=kind, name="whole", code_hash=code_hash(code))

    execute(user=user, call=call, now=timezone.now())

    assert RelayTransaction.objects.get().profile_address == untrusted.profile_address


@pytest.mark.parametrize("kind", Kind.values)
def test_one_deactivated_half_is_enough_to_refuse(
    user: User, new_call: Callable[..., RelayCall], refused: Refused, kind: str
) -> None:
    call = new_call()
    TrustedImplementation.objects.filter(kind=kind).update(is_active=False)
    refused.call(UntrustedCode, user, call)


def test_a_trusted_profile_implementation_is_not_trusted_as_a_key_manager(
    services: Services, user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    call, implementations = new_call(), services.world.implementations
    TrustedImplementation.objects.filter(address=implementations.key_manager).update(
        address=implementations.universal_profile
    )
    refused.call(UntrustedCode, user, call)


def test_open_mode_serves_unknown_code_up_to_its_own_gas_cap(
    services: Services, open_account: Callable[..., User], refused: Refused, settings: Settings
) -> None:
    settings.CHAIN_TRUST = "open"
    untrusted = services.world.deploy_untrusted_profile()
    user = open_account(untrusted)
    costly = sign_call(services=services, profile=untrusted, payload=set_data_payload(b"\x01" * 700))
    refusal = refused.call(GasLimitExceeded, user, costly)
    assert refusal.members["maximum"] == settings.RELAY_MAX_GAS_UNTRUSTED
    assert settings.RELAY_MAX_GAS_UNTRUSTED < refusal.members["gasLimit"] < settings.RELAY_MAX_GAS

    execute(user=user, call=sign_call(services=services, profile=untrusted), now=timezone.now())

    assert RelayTransaction.objects.get().gas_limit <= settings.RELAY_MAX_GAS_UNTRUSTED


def test_open_mode_still_checks_the_owner_of_the_profile(
    services: Services, profile: Profile, user: User, refused: Refused, settings: Settings
) -> None:
    settings.CHAIN_TRUST = "open"
    refused.call(
        KeyManagerNotOwner,
        user,
        claim(services, profile, services.world.deploy_stray_key_manager(profile.profile_address)),
    )


@pytest.mark.parametrize("is_claimed", [False, True])
def test_a_key_manager_that_no_row_knows_is_read_before_it_is_executed(
    services: Services,
    profile: Profile,
    user: User,
    open_account: Callable[..., User],
    node: FaultyClient,
    refused: Refused,
    is_claimed: bool,
) -> None:
    untrusted = services.world.deploy_untrusted_profile()
    # Any contract, or one that responds as a key manager and owns a profile.
    call = claim(services, profile, services.world.deploy_impostor())
    owner = open_account(untrusted) if is_claimed else user
    call = sign_call(services=services, profile=untrusted) if is_claimed else call
    with refused(UntrustedCode if is_claimed else ForeignKeyManager):
        execute(user=owner, call=call, now=timezone.now())
    assert (node.trials, node.estimates, node.requests) == ([], 0, 1)


def test_the_profiles_own_key_manager_is_read_once_and_then_known(
    services: Services, user: User, new_call: Callable[..., RelayCall], node: FaultyClient, refused: Refused
) -> None:
    # The first use of a channel costs more: a limit that another test's call left behind may not suffice.
    gas_limits._learned.clear()
    calls = [new_call(channel=secrets.randbits(100)) for _ in range(3)]
    for call in calls[:2]:
        execute(user=user, call=call, now=timezone.now())
    assert (node.requests, len(node.trials)) == (3, 2)
    # The rows know one key manager of the profile, not any.
    call = calls[2]
    stray = services.world.deploy_stray_key_manager(str(user.profile_address))
    refused.call(KeyManagerNotOwner, user, replace(call, key_manager=stray))
    assert len(node.trials) == 2


@pytest.fixture
def moving(
    services: Services, create_profile: Callable[..., Profile], open_account: Callable[..., User]
) -> tuple[User, Profile, Profile]:
    """A user's profile through its key manager, and through the new one that it moves to."""
    profile = create_profile()
    new = services.world.deploy_stray_key_manager(profile.profile_address)
    return open_account(profile), profile, replace(profile, key_manager_address=new)


def transfer(services: Services, moving: tuple[User, Profile, Profile], **changes: Any) -> RelayCall:
    """Sign the first step of the move."""
    _, profile, moved = moving
    hand_over = TRANSFER_OWNERSHIP + encode(["address"], [moved.key_manager_address])
    return sign_call(services=services, profile=profile, payload=hand_over, **changes)


def test_a_profile_moves_to_a_new_key_manager_by_two_relay_calls(
    services: Services, moving: tuple[User, Profile, Profile], settle: Callable[[], int], refused: Refused
) -> None:
    user, profile, moved = moving
    now = timezone.now()
    acceptance = sign_call(services=services, profile=moved, payload=ACCEPT_OWNERSHIP)
    refused.call(KeyManagerNotOwner, user, acceptance, now=now)
    execute(user=user, call=transfer(services, moving), now=now)
    settle()
    # Exactly that call, by exactly that key manager.
    other = services.world.deploy_stray_key_manager(profile.profile_address)
    for key_manager, payload in ((moved, set_data_payload()), (moved, ACCEPT_OWNERSHIP + b"\0")):
        with refused(KeyManagerNotOwner):
            call = sign_call(services=services, profile=key_manager, payload=payload)
            execute(user=user, call=call, now=now)
    stray = sign_call(
        services=services,
        profile=replace(profile, key_manager_address=other),
        payload=ACCEPT_OWNERSHIP,
    )
    refused.call(KeyManagerNotOwner, user, stray, now=now)

    execute(user=user, call=acceptance, now=now)
    settle()
    execute(user=user, call=sign_call(services=services, profile=moved), now=now)
    settle()

    assert [row.status for row in RelayTransaction.objects.order_by("pk")] == ["Success"] * 3
    refusal = refused.call(KeyManagerNotOwner, user, sign_call(services=services, profile=profile), now=now)
    assert refusal.members == {"owner": moved.key_manager_address}


def test_an_older_call_in_flight_fails_for_the_reason_that_the_profile_moved(
    services: Services, moving: tuple[User, Profile, Profile], settle: Callable[[], int], chain: Chain
) -> None:
    user, profile, moved = moving
    execute(user=user, call=transfer(services, moving), now=timezone.now())
    settle()
    execute(user=user, call=sign_call(services=services, profile=profile, channel=3), now=timezone.now())
    older = RelayTransaction.objects.latest("pk")
    chain.execute_externally(sign_call(services=services, profile=moved, payload=ACCEPT_OWNERSHIP))
    settle()
    older.refresh_from_db()
    assert (older.status, older.failure_code) == ("Failed", "key-manager-not-owner")
    assert moved.key_manager_address in older.failure_detail


def test_preparing_a_move_warns_and_its_second_step_is_for_the_new_key_manager(
    services: Services, moving: tuple[User, Profile, Profile], settle: Callable[[], int]
) -> None:
    user, profile, moved = moving
    call = transfer(services, moving)

    def prepare(payload: bytes) -> preparation.PreparedCall:
        draft = Draft(payload, controller=profile.controller.address)
        caller = Caller(user.pk, profile.profile_address)
        return preparation.prepare(caller=caller, draft=draft, now=timezone.now())

    assert [prepare(payload).moves_profile for payload in (call.payload, set_data_payload())] == [True, False]
    execute(user=user, call=call, now=timezone.now())
    settle()
    second = prepare(ACCEPT_OWNERSHIP)
    assert (second.call.key_manager, second.refusals) == (moved.key_manager_address, ())
    assert prepare(set_data_payload()).call.key_manager == profile.key_manager_address


def test_preparing_a_call_executes_no_unknown_contract(
    services: Services, open_account: Callable[..., User], node: FaultyClient
) -> None:
    untrusted = services.world.deploy_untrusted_profile()
    caller = Caller(open_account(untrusted).pk, untrusted.profile_address)
    draft = Draft(set_data_payload(), controller=untrusted.controller.address)
    prepared = preparation.prepare(caller=caller, draft=draft, now=timezone.now())
    assert [type(refusal) for refusal in prepared.refusals] == [UntrustedCode]
    assert (node.trials, node.estimates, prepared.gas_limit) == ([], 0, None)
    # The owner, then its contracts.
    assert node.requests == 2


def test_an_ownership_refusal_holds_nothing(
    services: Services,
    profile: Profile,
    user: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    call = claim(services, profile, random_address())
    # The rows, and the active transaction again before the refusal is believed.
    with django_assert_num_queries(2), pytest.raises(KeyManagerNotFound):
        execute(user=user, call=call, now=timezone.now())
