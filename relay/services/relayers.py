"""
Relayers: which sending account takes a call, and which account nonce it gives it.

An account nonce is taken under the relayer's row lock, in the transaction that
stores the signed bytes, so the order of account nonces is the order of acceptance.
"""

from typing import Any, NamedTuple

from django.conf import settings

from gateway.chain.config import get_chain
from gateway.chain.signing import get_signer
from gateway.common import sql
from relay.errors import RelayersBusy
from relay.models import Relayer
from relay.services import statements

# The id and the address of a relayer whose row this transaction has locked.
_Locked = tuple[Any, ...]


class Slot(NamedTuple):
    """An account nonce of a relayer, given to one call and to no other."""

    relayer_id: int
    relayer: str
    account_nonce: int


def take_slot(*, sticky_relayer_id: int | None, worst_cost_wei: int) -> Slot:
    """
    Take the next account nonce of a relayer that has room and can pay `worst_cost_wei`.

    A call whose channel is in flight gets that channel's relayer or none, because
    only one account's nonces put transactions in an order. Call it inside the
    transaction that will store the attempt, after the credit account's lock; the
    relayer's row stays locked until that transaction ends.

    Raises:
        RelayersBusy: every relayer is full, inactive or too poor; the sticky one may be.
    """
    params = {
        "relayer": sticky_relayer_id,
        "addresses": get_signer().addresses(),
        "cap": settings.RELAY_MAX_IN_FLIGHT,
        "worst_cost_wei": worst_cost_wei,
    }
    if sticky_relayer_id is not None:
        slot = _take(sql.first_row(statements.LOCK_RELAYER, params), params)
        if slot is None:
            raise RelayersBusy(
                "The relayer of this channel is full. Repeat the call.", retry_after=seconds_until_room()
            )
        return slot
    slot = _take(_lock_least_loaded(params), params) or _take(_lock_able(params), params)
    if slot is None:
        raise RelayersBusy("Every relayer is full. Repeat the call.", retry_after=seconds_until_room())
    return slot


def _lock_least_loaded(params: dict[str, Any]) -> _Locked | None:
    return sql.first_row(statements.LOCK_LEAST_LOADED_FREE, params) or sql.first_row(
        statements.LOCK_LEAST_LOADED, params
    )


def _lock_able(params: dict[str, Any]) -> _Locked | None:
    """
    Lock a relayer that can pay, where the least loaded cannot on top of what it has in flight.

    This adds up what every relayer has in flight, which is expensive, so it comes last. It does
    not wait: two requests that each hold a relayer and want the other's would wait for ever.
    """
    return (
        Relayer.objects.with_room(params["cap"])
        .able_to_pay(params["worst_cost_wei"])
        .filter(address__in=params["addresses"])
        .least_loaded_first()
        .select_for_update(skip_locked=True, no_key=True)
        .values_list("pk", "address")
        .first()
    )


def _take(locked: _Locked | None, params: dict[str, Any]) -> Slot | None:
    """Return the slot; None where there is no relayer, or its balance does not cover the call."""
    if locked is None:
        return None
    relayer_id, address = locked
    row = sql.first_row(statements.TAKE_ACCOUNT_NONCE, {**params, "relayer": relayer_id})
    return None if row is None else Slot(relayer_id, address, row[0])


def seconds_until_room() -> int:
    """Return after how many seconds it is worth asking again: a block makes room."""
    return max(1, min(get_chain().block_seconds, settings.RELAY_TRACK_SECONDS + 1))
