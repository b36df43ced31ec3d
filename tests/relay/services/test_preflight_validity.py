"""Validity windows, before anything is held."""

import random
from collections.abc import Callable
from contextlib import nullcontext

import pytest
from django.conf import settings
from django.utils import timezone

from gateway.chain.errors import RelayCallExpired, RelayCallNotYetValid
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.errors import ValidityTooShort
from relay.models import RelayTransaction
from relay.services.preflight import check_validity
from relay.services.submission import execute
from tests.relay.chain import Chain, MeddlingClient
from tests.relay.conftest import Refused
from tests.relay.signing import window
from tests.relay.workers import later
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_call_before_its_time_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    now = timezone.now()
    start = int(now.timestamp()) + random.randint(1, 10**6)
    call = new_call(validity=window(start, 0))
    with refused(RelayCallNotYetValid) as refusal:
        execute(user=user, call=call, now=now)
    assert refusal.value.members == {"validFrom": start, "serverTime": int(now.timestamp())}


def test_a_call_after_its_time_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    now = timezone.now()
    end = int(now.timestamp()) - random.randint(1, 10**6)
    call = new_call(validity=window(0, end))
    with refused(RelayCallExpired) as refusal:
        execute(user=user, call=call, now=now)
    assert refusal.value.members == {"validUntil": end, "serverTime": int(now.timestamp())}


def test_a_call_that_could_not_be_mined_in_time_is_refused(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    now = timezone.now()
    end = int(now.timestamp()) + settings.RELAY_MIN_VALIDITY_SECONDS - 1
    call = new_call(validity=window(0, end))
    with refused(ValidityTooShort) as refusal:
        execute(user=user, call=call, now=now)
    assert refusal.value.members["minimumSeconds"] == settings.RELAY_MIN_VALIDITY_SECONDS


@pytest.mark.parametrize("ends", [True, False], ids=["just long enough", "open-ended"])
def test_a_call_within_its_window_is_executed(
    user: User, new_call: Callable[..., RelayCall], settle: Callable[[], int], chain: Chain, ends: bool
) -> None:
    chain.mine()
    now = timezone.now()
    # One second of grace: the chain's newest block may be a second ahead.
    end = int(now.timestamp()) + settings.RELAY_MIN_VALIDITY_SECONDS + 1 if ends else 0
    execute(user=user, call=new_call(validity=window(int(now.timestamp()) - 60, end)), now=now)
    assert settle() == 1
    assert RelayTransaction.objects.get().status == "Success"


@pytest.mark.parametrize(
    ("validity", "kind"),
    [
        (0, None),
        (window(1_000, 0), None),
        (window(1_001, 0), RelayCallNotYetValid),
        (window(0, 1_000 + settings.RELAY_MIN_VALIDITY_SECONDS), None),
        (window(0, 999 + settings.RELAY_MIN_VALIDITY_SECONDS), ValidityTooShort),
        (window(0, 1_000), ValidityTooShort),
        (window(0, 999), RelayCallExpired),
        (window(2_000, 500), RelayCallNotYetValid),
    ],
)
def test_the_window_is_exact_to_the_second(validity: int, kind: type[DomainError] | None) -> None:
    call = RelayCall("0x" + "00" * 20, b"", b"", 0, validity)
    with pytest.raises(kind) if kind else nullcontext():
        check_validity(call=call, now=1_000)


def test_a_call_that_is_over_by_our_clock_costs_the_node_no_question(
    user: User, new_call: Callable[..., RelayCall], node: MeddlingClient, refused: Refused
) -> None:
    call = new_call(validity=window(0, int(later(600).timestamp())))
    with refused(RelayCallExpired):
        execute(user=user, call=call, now=later(601))
    assert node.requests == 0


def test_the_chains_clock_counts_as_well_as_ours(
    user: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    now = timezone.now()
    start = int(now.timestamp()) + 600
    call = new_call(validity=window(start, 0))
    # Our clock runs ahead: the call is due for us and not for the chain.
    with refused(RelayCallNotYetValid) as refusal:
        execute(user=user, call=call, now=later(700))
    assert abs(refusal.value.members["serverTime"] - int(now.timestamp())) < 60
