"""Calls of an erased user do not block a later user of the same profile."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from credits.models import CreditHold
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from devstack.world.test_contracts import deploy_flaky
from gateway.chain.lsp25 import RelayCall
from relay.models import Loss, RelayTransaction
from relay.services import erasure
from tests.relay.callers import execute
from tests.relay.signing import execute_payload
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
