"""
Relayers: which sending account takes a call, and which account nonce it gives it.

An account nonce is taken under the relayer's row lock, in the transaction that
stores the signed bytes, so the order of account nonces is the order of acceptance.
"""

from django.conf import settings
from django.db.models import F

from gateway.chain.signing import get_signer
from relay.errors import RelayersBusy
from relay.models import Relayer


def claim(*, sticky_relayer_id: int | None, worst_cost_wei: int) -> Relayer:
    """
    Return a locked relayer that has a free account nonce and can pay `worst_cost_wei`.

    A call whose channel is in flight gets that channel's relayer or none, because
    only one account's nonces put transactions in an order. Call it inside the
    transaction that will store the attempt, after the credit account's lock.

    Raises:
        RelayersBusy: every relayer is full, inactive or too poor; the sticky one may be.
    """
    if sticky_relayer_id is not None:
        relayer = Relayer.objects.select_for_update(no_key=True).get(pk=sticky_relayer_id)
        if _has_room(relayer) and _can_pay(relayer, worst_cost_wei):
            return relayer
        raise RelayersBusy(
            "The relayer of this channel is full. Repeat the call.", retry_after=_retry_after()
        )
    found = _lock_least_loaded(worst_cost_wei, skip_locked=True) or _lock_least_loaded(
        worst_cost_wei, skip_locked=False
    )
    if found is None or not _can_pay(found, worst_cost_wei):
        raise RelayersBusy("Every relayer is full. Repeat the call.", retry_after=_retry_after())
    return found


def take_account_nonce(*, relayer: Relayer) -> int:
    """Return the relayer's next account nonce and move on. The relayer's row must be locked."""
    taken = relayer.next_account_nonce
    Relayer.objects.filter(pk=relayer.pk).update(next_account_nonce=F("next_account_nonce") + 1)
    return taken


def _lock_least_loaded(worst_cost_wei: int, *, skip_locked: bool) -> Relayer | None:
    """Lock one row at the most: two requests that each hold a relayer and want the other's would wait for ever."""
    return (
        Relayer.objects.with_room(settings.RELAY_MAX_IN_FLIGHT)
        .able_to_pay(worst_cost_wei)
        .filter(address__in=get_signer().addresses())
        .least_loaded_first()
        .select_for_update(skip_locked=skip_locked, no_key=True)
        .first()
    )


def _has_room(relayer: Relayer) -> bool:
    return (
        relayer.is_active
        and relayer.in_flight < settings.RELAY_MAX_IN_FLIGHT
        and relayer.address in get_signer().addresses()
    )


def _can_pay(relayer: Relayer, worst_cost_wei: int) -> bool:
    """Ask anew under the lock: what was in flight before it may be less than what is now."""
    return Relayer.objects.filter(pk=relayer.pk).able_to_pay(worst_cost_wei).exists()


def _retry_after() -> int:
    """Return seconds: a block makes room."""
    return max(1, min(settings.CHAIN_BLOCK_SECONDS, settings.RELAY_TRACK_SECONDS + 1))
