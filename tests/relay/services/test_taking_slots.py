"""What `relay_take_slots` returns where requests seldom come: the last wei, another controller, limits used up."""

import secrets
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from eth_utils.address import to_checksum_address
from pytest_django import Settings

from devstack.services.stack import Services
from devstack.world.profiles import Profile
from relay.models import Relayer, RelayTransaction
from tests.factories import make
from tests.relay.callers import execute
from tests.relay.conftest import Accept
from tests.relay.signing import sign_call
from tests.relay.slots import ask
from tests.threads import waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def somebody_else() -> str:
    return to_checksum_address("0x" + secrets.token_hex(20))


def end(row: RelayTransaction, status: str) -> None:
    """Have the call end now, as far as limits are concerned."""
    RelayTransaction.objects.filter(pk=row.pk).update(status=status, settled_at=timezone.now())


@pytest.mark.parametrize("place", [0, 1], ids=["chosen first", "found last"])
@pytest.mark.parametrize(("missing", "outcome"), [(0, "taken"), (1, "relayers-busy")])
def test_a_relayer_pays_for_a_call_to_the_last_wei(
    relayers: list[Relayer], accept: Accept, place: int, missing: int, outcome: str
) -> None:
    row = accept()
    idle = [relayer for relayer in relayers if relayer.pk != row.relayer_id]
    Relayer.objects.update(balance_wei=0)
    Relayer.objects.filter(pk=idle[place].pk).update(balance_wei=10**6 - missing)
    result = ask(row, worst_cost_wei=10**6)
    assert (result["outcome"], result["relayer_id"]) == (outcome, None if missing else idle[place].pk)


def test_a_relayer_of_another_chain_with_the_same_key_takes_no_call_of_this_one(
    relayers: list[Relayer], accept: Accept
) -> None:
    row = accept()
    Relayer.objects.update(next_account_nonce=F("mined_account_nonce") + 1)
    for relayer in relayers:
        make(Relayer, chain_id=1, address=relayer.address, balance_wei=10**20)
    assert ask(row)["relayer_id"] in {relayer.pk for relayer in relayers}


def test_a_repeated_hold_returns_the_hash_of_its_call(accept: Accept) -> None:
    first, second = accept(channel=1), accept(channel=2)
    for row in (first, second):
        result = ask(row, key=row.hold.key)
        assert (result["outcome"], result["transaction_hash"]) == ("repeated", row.transaction_hash)


@pytest.mark.parametrize("member", ["controller", "key_manager"])
def test_another_controller_or_key_manager_has_channels_of_its_own(accept: Accept, member: str) -> None:
    row = accept(channel=7)
    Relayer.objects.filter(pk=row.relayer_id).update(is_active=False)
    place: dict[str, Any] = {
        "channel": row.channel,
        "relay_nonce": row.relay_nonce,
        "chain_nonce": row.relay_nonce,
    }
    result = ask(row, **{**place, member: somebody_else()})
    assert result["outcome"] == "taken"
    assert result["relayer_id"] != row.relayer_id
    assert ask(row, **place)["outcome"] == "nonce-taken"


@pytest.mark.parametrize(("percent", "outcome", "maximum"), [(66, "share-used", 1), (67, "taken", None)])
def test_mined_unsettled_calls_do_not_change_the_share(
    accept: Accept, settings: Settings, percent: int, outcome: str, maximum: int | None
) -> None:
    settings.RELAY_MAX_IN_FLIGHT = 1
    row = accept()
    Relayer.objects.update(mined_account_nonce=F("next_account_nonce"))
    assert Relayer.objects.count() == 3
    result = ask(row, policy={"share_percent": percent})
    assert (result["outcome"], result["number"]) == (outcome, maximum)


@pytest.mark.parametrize(
    ("limit", "status", "outcome", "maximum"),
    [
        (0, "Success", "share-used", 0),
        (1, "Success", "share-used", 1),
        (2, "Success", "taken", None),
        (2, "Failed", "share-used", 1),
        (3, "Failed", "taken", None),
    ],
)
def test_calls_in_flight_and_those_that_failed_are_as_many_as_may_end_without_effect(
    accept: Accept, limit: int, status: str, outcome: str, maximum: int | None
) -> None:
    accept(channel=1)
    end(accept(channel=2), status)
    # A settled call holds nothing.
    row = RelayTransaction.objects.exclude(status=status).get()
    account = row.hold.account
    account.open_holds = 1
    account.save(update_fields=["open_holds"])
    result = ask(row, policy={"per_hour": limit})
    assert (result["outcome"], result["number"]) == (outcome, maximum)


def test_failed_calls_of_other_users_do_not_count(
    services: Services,
    accept: Accept,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
) -> None:
    profile = create_profile()
    other = open_account(profile)
    for channel in range(2):
        execute(
            user=other,
            call=sign_call(services=services, profile=profile, channel=channel),
            now=timezone.now(),
        )
    for row in RelayTransaction.objects.all():
        end(row, "Failed")
    assert ask(accept(), policy={"per_hour": 2})["outcome"] == "taken"


@pytest.mark.django_db(transaction=True)
def test_a_waiting_call_waits_for_a_relayer_that_accepts_calls(
    relayers: list[Relayer], accept: Accept
) -> None:
    row = accept()
    # Of those with nothing in flight, the first would be chosen.
    paused = next(relayer for relayer in relayers if relayer.pk != row.relayer_id)
    others = [relayer for relayer in relayers if relayer.pk != paused.pk]
    Relayer.objects.filter(pk=paused.pk).update(is_active=False)

    def take() -> dict[str, object]:
        return ask(row)

    with waits_for_this_transaction(take, in_transaction=True) as second:
        list(Relayer.objects.select_for_update(no_key=True).filter(pk__in=[one.pk for one in others]))
    result = second.result()
    assert isinstance(result, dict)
    assert result["outcome"] == "taken"
    assert result["relayer_id"] != paused.pk
