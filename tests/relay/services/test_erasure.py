"""What is erased of a user's calls and profiles does not block a later user of the same profile."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from credits.models import CreditHold
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from devstack.world.test_contracts import deploy_flaky
from gateway.chain.lsp25 import RelayCall
from relay.models import Loss, ProfileCreation, RelayTransaction
from relay.services import erasure
from tests.relay.callers import execute
from tests.relay.creating import a_request, create, for_profiles
from tests.relay.signing import execute_payload
from tests.relay.sponsoring import execute_sponsored
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_call_that_failed_can_be_handed_in_again_by_the_profiles_next_account(
    user: User,
    profile: Profile,
    services: Services,
    new_call: Callable[..., RelayCall],
    open_account: Callable[..., User],
    settle: Callable[[], int],
) -> None:
    flaky = deploy_flaky(services.world.deployer)
    call = new_call(payload=execute_payload(flaky.address))
    execute(user=user, call=call, now=timezone.now())
    failed = RelayTransaction.objects.get()
    Loss.objects.create(
        key=failed.hold.key, user=user, kind=Loss.Kind.UNTRUSTED, reserved_wei=1, reserved_at=timezone.now()
    )
    flaky.flip()
    assert settle() == 1
    flaky.flip()

    erasure.erase(user)
    User.objects.filter(pk=user.pk).update(username=f"deleted-{user.pk}", profile_address=None)
    assert CreditHold.objects.get().key == Loss.objects.get().key == f"relay:erased:{failed.hold_id}"

    new = open_account(profile)
    assert execute(user=new, call=call, now=timezone.now()) != failed.transaction_hash
    assert settle() == 1
    again = RelayTransaction.objects.get(user=new)
    assert (again.generation, again.digest, again.status) == (0, failed.digest, "Success")


def test_a_failed_call_that_a_sponsor_paid_can_be_handed_in_again_too(
    user: User,
    profile: Profile,
    services: Services,
    new_call: Callable[..., RelayCall],
    open_account: Callable[..., User],
    settle: Callable[[], int],
) -> None:
    flaky, sponsor = deploy_flaky(services.world.deployer), make_sponsor()
    make_policy(sponsor)
    call = new_call(payload=execute_payload(flaky.address))
    execute_sponsored(user, call, sponsor)
    flaky.flip()
    assert settle() == 1
    flaky.flip()
    erasure.erase(user)
    User.objects.filter(pk=user.pk).update(username=f"deleted-{user.pk}", profile_address=None)
    keys = "".join(CreditHold.objects.values_list("key", flat=True))
    assert profile.controller.address not in keys

    execute_sponsored(open_account(profile), call, sponsor)
    assert settle() == 1


def test_a_created_profile_is_no_longer_named_and_the_same_request_opens_a_new_account(
    relayers: object, trusted: None, settle: Callable[[], int]
) -> None:
    sponsor, request = make_sponsor(), a_request(origin="203.0.113.9")
    for_profiles(sponsor)
    row = create(sponsor, request)
    assert settle() == 1
    named = (row.profile_address, row.key_manager_address, row.controllers[0]["address"], row.origin)

    erasure.erase(row.user)
    User.objects.filter(pk=row.user_id).update(username=f"deleted-{row.user_id}", profile_address=None)
    stored = str(list(ProfileCreation.objects.values()))
    assert [name for name in named if name in stored] == []

    again = create(sponsor, request)
    assert (again.profile_address, again.hold) == (row.profile_address, None)
    assert again.user_id != row.user_id
    assert RelayTransaction.objects.count() == 1
