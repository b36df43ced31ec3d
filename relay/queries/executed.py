"""Executed calls by their transaction's hash, as the chain shows them, for the simulator of sponsors."""

from gateway.chain.config import chains, on_chain
from relay.models import Attempt
from relay.pricing import credits_of
from relay.queries.prices import current_price
from sponsors.rules.calls import Unreadable, actions_of
from sponsors.services.simulation import ImaginedCall


def executed_call(transaction_hash: str) -> ImaginedCall | None:
    """
    Return the executed call of this hash with its highest cost at today's price; None for any other hash.

    It is looked for on each chain. A sponsor may name any hash, so nothing is read that the chain does not show.
    """
    for chain in chains():
        with on_chain(chain.id):
            if (call := _executed_here(transaction_hash)) is not None:
                return call
    return None


def _executed_here(transaction_hash: str) -> ImaginedCall | None:
    mined = Attempt.objects.with_hash(transaction_hash).filter(
        kind=Attempt.Kind.CALL,
        status=Attempt.Status.MINED,
        relay_transaction__deploys_profile=False,
    )
    attempt = mined.select_related("relay_transaction").first()
    # The payload of a deleted account is gone.
    if attempt is None or not attempt.relay_transaction.payload:
        return None
    call, price = attempt.relay_transaction, int(attempt.max_fee_per_gas_wei)
    try:
        actions = actions_of(
            bytes(call.payload), profile=call.profile_address, key_manager=call.key_manager_address
        )
    except Unreadable:
        actions = None
    highest_wei = attempt.gas_limit * price + int(attempt.max_extra_fee_wei)
    return ImaginedCall(
        profile=call.profile_address,
        actions=actions,
        credits=credits_of(highest_wei, credit_wei=current_price().credit_wei),
        gas_price_wei=price,
        chain_id=call.chain_id,
    )
