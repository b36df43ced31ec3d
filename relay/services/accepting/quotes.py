"""
Quotes: a call that is handed in with one never costs its user more than the quote says.

A quote promises what would be held at the fees of the moment. It is bound to the call's digest, good for one call and
for a short time, within which the base fee can rise only so far. What the service loses if it does is reserved when the
quote is given. The hold of a call with a quote never exceeds it, and nobody is charged more than was held: so neither
higher fees nor a replacement make the call cost more. What the hold does not cover is the service's loss.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from gateway.chain.config import get_chain
from gateway.chain.fees import Fees, FeesTooHigh, highest_base_fee
from gateway.common.errors import DomainError
from relay.errors import (
    QuoteExpired,
    QuoteForOtherCall,
    QuoteNotFound,
    QuoteOutdated,
    QuoteUnavailable,
    QuoteUsed,
)
from relay.models import Loss, Quote
from relay.pricing import cost_in_credits
from relay.queries import Identity, QuotedTerms
from relay.services.accepting.gas_limits import Gas
from relay.services.accepting.preflight import Approval
from relay.services.fleet import losses


@dataclass(frozen=True, slots=True)
class Offer:
    """What a quote is made for: the call, the gas it would be signed with, and the newest block's base fee."""

    user_id: int
    identity: Identity
    approval: Approval
    base_fee_wei: int


def issue(offer: Offer, *, now: datetime) -> Quote | DomainError:
    """Return a quote for the call, with what it may cost the service reserved; or why there is none."""
    gas, fees = offer.approval.gas, offer.approval.fees
    if not offer.approval.is_trusted:
        return QuoteUnavailable("Unvetted code decides itself what it costs, so it gets no quote.")
    quote = Quote(
        user_id=offer.user_id,
        digest=offer.identity.digest,
        credits=cost_in_credits(
            gas=gas.limit, price_wei=fees.max_fee_per_gas_wei, credit_wei=settings.CREDIT_WEI
        ),
        gas_limit=gas.limit,
        max_fee_per_gas_wei=_highest_fee(fees, offer.base_fee_wei),
        expires_at=now + timedelta(seconds=settings.RELAY_QUOTE_SECONDS),
    )
    loss_wei = gas.limit * quote.max_fee_per_gas_wei - quote.credits * settings.CREDIT_WEI
    with transaction.atomic(durable=True):
        quote.save(force_insert=True)
        if losses.reserve(
            key=quote.loss_key, user_id=offer.user_id, amount_wei=loss_wei, kind=Loss.Kind.QUOTE, now=now
        ):
            return quote
        transaction.set_rollback(True)
    return QuoteUnavailable(
        "What the service may lose by quotes is reserved by others, or by yours. Repeat later.",
        retry_after=settings.RELAY_QUOTE_SECONDS,
    )


def _highest_fee(fees: Fees, base_fee_wei: int) -> int:
    """Return the most that a new call could offer per gas before the quote expires."""
    # The newest block may be a moment old, and the call is mined in a block after the quote's last one.
    blocks = settings.RELAY_QUOTE_SECONDS // get_chain().block_seconds + 2
    rise_wei = 2 * (highest_base_fee(base_fee_wei, blocks=blocks) - base_fee_wei)
    policy = get_chain().fees
    return max(fees.max_fee_per_gas_wei, min(fees.max_fee_per_gas_wei + rise_wei, policy.new_call_cap_wei))


def check(terms: QuotedTerms | None, *, identity: Identity, now: datetime) -> None:
    """
    Refuse a quote that does not cover the call.

    Raises:
        QuoteNotFound, QuoteForOtherCall, QuoteUsed, QuoteExpired.
    """
    if terms is None:
        raise QuoteNotFound("The signed-in profile has no such quote. Prepare the call again.")
    if terms.digest != identity.digest:
        raise QuoteForOtherCall("The quote is for another call than the signed one.", hash=terms.digest)
    if terms.is_used:
        raise QuoteUsed("A call was accepted with this quote before. Prepare the call again.")
    if terms.expires_at <= now:
        raise QuoteExpired(
            "The quote's time is over. Prepare the call again.", expiredAt=int(terms.expires_at.timestamp())
        )


def within(terms: QuotedTerms, approval: Approval) -> Approval:
    """
    Return the approval with gas and fees that the quote's reservation covers.

    Raises:
        QuoteOutdated: the call needs more gas than it was quoted with.
        FeesTooHigh: the base fee rose faster than a chain lets it.
    """
    gas, fees = approval.gas, approval.fees
    if gas.expected > terms.gas_limit:
        raise QuoteOutdated(
            f"The call needs {gas.expected} gas and was quoted with {terms.gas_limit}. Prepare it again.",
            gasLimit=gas.expected,
            quotedGasLimit=terms.gas_limit,
        )
    most_wei = terms.max_fee_per_gas_wei
    if fees.expected_price_wei > most_wei:
        raise FeesTooHigh(
            "The chain asks for more per gas than the quote covers. Repeat later, or without the quote.",
            retry_after=FeesTooHigh.retry_seconds,
            pricePerGasWei=str(fees.expected_price_wei),
            maximumPricePerGasWei=str(most_wei),
        )
    max_fee_wei = min(fees.max_fee_per_gas_wei, most_wei)
    bounded = replace(
        fees,
        max_fee_per_gas_wei=max_fee_wei,
        max_priority_fee_per_gas_wei=min(fees.max_priority_fee_per_gas_wei, max_fee_wei),
    )
    return replace(approval, gas=Gas(min(gas.limit, terms.gas_limit), gas.expected), fees=bounded)
