"""Pausing the whole relay: no new call is accepted, and accepted ones are settled."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from gateway.chain.lsp25 import RelayCall
from gateway.staff.pauses import switch
from relay.errors import RelayPaused
from relay.models import RelayTransaction
from relay.queries.calls import RELAY
from tests.factories import UserFactory
from tests.relay.callers import execute
from tests.relay.conftest import Accept, Refused
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(db: None) -> User:
    return UserFactory.create(profile_address=None, is_staff=True)


def test_a_paused_relay_accepts_nothing_new_until_it_is_resumed(
    user: User, staff: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    call = new_call()
    switch(RELAY, is_paused=True, actor=staff, reason="the chain forks")
    refusal = refused.call(RelayPaused, user, call)
    assert refusal.retry_after
    switch(RELAY, is_paused=False, actor=staff, reason="it does not")
    assert execute(user=user, call=call, now=timezone.now())


def test_accepted_calls_are_returned_and_settled_while_paused(
    user: User, staff: User, accept: Accept, new_call: Callable[..., RelayCall], settle: Callable[[], int]
) -> None:
    call = new_call()
    accepted = execute(user=user, call=call, now=timezone.now())
    switch(RELAY, is_paused=True, actor=staff, reason="the chain forks")
    assert execute(user=user, call=call, now=timezone.now()) == accepted
    assert settle() == 1
    assert RelayTransaction.objects.get().status == RelayTransaction.Status.SUCCESS
