"""
Relayers: which sending account takes a call, and which account nonce it gives it.

An account nonce is taken under the relayer's row lock, in the transaction that
stores the signed bytes, so the order of account nonces is the order of acceptance.
"""

from django.conf import settings
from django.db.models import F, Sum

from gateway.chain.signing import get_signer
from gateway.common.fields import Uint256Field
from relay.errors import RelayersBusy
from relay.models import Attempt, Relayer


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
    found = _least_loaded(worst_cost_wei, skip_locked=True) or _least_loaded(
        worst_cost_wei, skip_locked=False
    )
    if found is None:
        raise RelayersBusy("Every relayer is full. Repeat the call.", retry_after=_retry_after())
    return found


def take_account_nonce(*, relayer: Relayer) -> int:
    """Return the relayer's next account nonce and move on. The relayer's row must be locked."""
    taken = relayer.next_account_nonce
    Relayer.objects.filter(pk=relayer.pk).update(next_account_nonce=F("next_account_nonce") + 1)
    return taken


def _least_loaded(worst_cost_wei: int, *, skip_locked: bool) -> Relayer | None:
    too_poor: list[int] = []
    while True:
        relayer = (
            Relayer.objects.with_room(settings.RELAY_MAX_IN_FLIGHT)
            .filter(address__in=get_signer().addresses())
            .exclude(pk__in=too_poor)
            .least_loaded_first()
            .select_for_update(skip_locked=skip_locked, no_key=True)
            .first()
        )
        if relayer is None or _can_pay(relayer, worst_cost_wei):
            return relayer
        too_poor.append(relayer.pk)


def _has_room(relayer: Relayer) -> bool:
    return (
        relayer.is_active
        and relayer.in_flight < settings.RELAY_MAX_IN_FLIGHT
        and relayer.address in get_signer().addresses()
    )


def _can_pay(relayer: Relayer, worst_cost_wei: int) -> bool:
    """Compare the balance with what the account nonces in flight may take at the most, plus this call."""
    committed = (
        Attempt.objects.filter(relayer=relayer, account_nonce__gte=relayer.mined_account_nonce)
        .exclude(status__in=[Attempt.Status.WITHDRAWN, Attempt.Status.MINED])
        .aggregate(wei=Sum(F("gas_limit") * F("max_fee_per_gas_wei"), output_field=Uint256Field()))["wei"]
    )
    return relayer.balance_wei - int(committed or 0) >= worst_cost_wei


def _retry_after() -> int:
    """Return seconds: a block makes room."""
    return max(1, min(settings.CHAIN_BLOCK_SECONDS, settings.RELAY_TRACK_SECONDS + 1))
