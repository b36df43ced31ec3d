"""
The past calls over which a sponsor's draft of terms is previewed.

They are the newest that the sponsor paid, or refused to callers who named it. Without any, they are calls that anyone
sent to the draft's contracts. Of those calls the sponsor learns only what is on the chain: they are executed ones,
their costs follow from their transactions, and nothing depends on when a profile has signed in here or who paid.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gateway.chain.config import home, on_chain
from gateway.common import db
from gateway.common.statements import Statements, literals
from portal.queries import actions_in, actions_stored, paid_calls, refused_requests
from relay.models import Attempt, AttemptStatus, RelayStatus
from relay.pricing import credits_of
from relay.queries.prices import current_price
from sponsors.models import PolicyVersion, RefusedRequest, Sponsor, SponsoredCall
from sponsors.queries import rules_of
from sponsors.rules.calls import PROFILE
from sponsors.rules.policies import Purpose
from sponsors.rules.preview import PastCall, Preview, preview

MOST_CALLS = 50
# Calls to a draft's contracts are looked for among this many.
_SCANNED = 20_000


class _Sql(Statements, file=__file__, success=literals(RelayStatus.SUCCESS)):
    to_contracts: str


@dataclass(frozen=True, slots=True)
class Previewed:
    """A preview, and which calls it is about: the sponsor's `own`, or all `public` ones to the draft's contracts."""

    calls: Literal["own", "public"]
    outcome: Preview


def preview_of(sponsor: Sponsor, draft: PolicyVersion) -> Previewed:
    """
    Return what the draft would have done with past calls.

    Raises:
        ValueError: the terms contradict each other.
    """
    terms, listed = rules_of(draft), frozenset(draft.listed)
    own = _own_calls(sponsor)
    if own:
        return Previewed("own", preview(terms, own, listed=listed))
    contracts = {target.contract for target in terms.targets} - {PROFILE}
    return Previewed("public", preview(terms, _public_calls(terms.chain_id, contracts), listed=listed))


def _own_calls(sponsor: Sponsor) -> list[PastCall]:
    # The payload of a deleted account is gone.
    paid = [call for call in paid_calls(sponsor, MOST_CALLS) if call.hold.relay_transaction.payload]
    prices = _first_prices([call.hold.relay_transaction.pk for call in paid])
    calls = [_paid(call, prices) for call in paid]
    calls += map(_refused, refused_requests(sponsor, MOST_CALLS))
    return sorted(calls, key=lambda call: call.at, reverse=True)[:MOST_CALLS]


def _paid(call: SponsoredCall, prices: dict[int, int]) -> PastCall:
    relayed = call.hold.relay_transaction
    highest = call.hold.amount + call.sponsor_hold.amount
    return PastCall(
        at=call.accepted_at,
        profile=relayed.profile_address,
        actions=actions_in(relayed) or None,
        credits=highest,
        cost=highest if relayed.is_in_progress else relayed.real_cost,
        gas_price_wei=prices.get(relayed.pk, 0),
        chain_id=relayed.chain_id,
        profile_since=call.user.date_joined,
        purpose=Purpose.PROFILES if relayed.deploys_profile else Purpose.CALLS,
    )


def _refused(request: RefusedRequest) -> PastCall:
    return PastCall(
        at=request.refused_at,
        profile=str(request.user.profile_address),
        actions=actions_stored(request) or None,
        credits=request.credits,
        cost=request.credits,
        gas_price_wei=int(request.gas_price_wei),
        chain_id=request.chain_id or home().id,
        profile_since=request.user.date_joined,
    )


def _first_prices(calls: Collection[int]) -> dict[int, int]:
    """Return the gas price for which each call was first signed."""
    attempts = Attempt.objects.filter(relay_transaction__in=calls, kind=Attempt.Kind.CALL)
    first = attempts.order_by("relay_transaction", "sequence").distinct("relay_transaction")
    return {call: int(price) for call, price in first.values_list("relay_transaction", "max_fee_per_gas_wei")}


def _public_calls(chain_id: int, contracts: Collection[str]) -> list[PastCall]:
    """Return the newest executed calls to the contracts of a chain, by what the chain shows of them."""
    values = {
        "chain": chain_id,
        "contracts": [bytes.fromhex(contract[2:]) for contract in contracts],
        "scanned": _SCANNED,
        "limit": MOST_CALLS,
    }
    ids = [call_id for (call_id,) in db.all_rows(_Sql.to_contracts, values)] if contracts else []
    mined = Attempt.objects.filter(
        relay_transaction__in=ids, kind=Attempt.Kind.CALL, status=AttemptStatus.MINED, succeeded=True
    )
    # Today's price: that of the call may be one that only its own user knows, from a quote.
    with on_chain(chain_id):
        credit_wei = current_price().credit_wei
    return [_public(attempt, credit_wei) for attempt in mined.select_related("relay_transaction")]


def _public(attempt: Attempt, credit_wei: int) -> PastCall:
    call = attempt.relay_transaction
    price = int(attempt.max_fee_per_gas_wei)
    # Not the credits that were charged: a quote may have limited them.
    gas = (attempt.gas_used or 0) * int(attempt.effective_gas_price_wei or 0)
    spent = gas + int(attempt.extra_fee_wei)
    return PastCall(
        at=attempt.mined_at or call.created_at,
        profile=call.profile_address,
        actions=actions_in(call) or None,
        credits=credits_of(attempt.gas_limit * price, credit_wei=credit_wei),
        cost=credits_of(spent, credit_wei=credit_wei),
        gas_price_wei=price,
        chain_id=call.chain_id,
    )
