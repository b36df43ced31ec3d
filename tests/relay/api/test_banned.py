"""No call of a banned person is accepted, with a token or without; calls in progress are completed."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.models import RelayTransaction
from tests.relay.api.conftest import Wallet, execute_body
from tests.relay.api.test_bodies import LSP15_EXECUTE, LSP15_QUOTA
from tests.relay.api.test_execute import EXECUTE, assert_problem
from tests.relay.api.test_lsp15 import lsp15_body
from tests.relay.api.test_quota import quota_body
from tests.relay.rows import everything
from tests.staff import member
from users.models import User
from users.services import bans

pytestmark = pytest.mark.django_db


def test_no_door_accepts_a_call_and_those_in_progress_are_settled(
    anonymous: Wallet,
    wallet: Wallet,
    user: User,
    profile: Profile,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
) -> None:
    accepted = wallet.post(EXECUTE, execute_body(new_call(channel=1)))
    assert accepted.status == 200
    call = new_call(channel=2)
    bans.ban(user=user, actor=member("support"), reason="abuse", now=timezone.now())
    before = everything()
    for refused in (
        wallet.post(EXECUTE, execute_body(call)),
        anonymous.post(LSP15_EXECUTE, lsp15_body(profile, call)),
        anonymous.post(LSP15_QUOTA, quota_body(profile)),
    ):
        assert_problem(refused, 403, "account-banned")
    assert everything() == before

    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"
    bans.lift(user=user, actor=member("support"), now=timezone.now())
    assert anonymous.post(LSP15_EXECUTE, lsp15_body(profile, call)).status == 200
