"""
Quotes: a call submitted with a quote never costs its user more than the quote.

A quote promises the call's hold at current fees. It is bound to the call's digest, and valid once and for a short time,
in which the base fee can rise only by a known factor. The service reserves its possible loss from such a rise when it
issues the quote. The hold of a call with a quote never exceeds the quote, and a user is never charged more than the
hold, so neither higher fees nor a replacement raise the cost. The service pays the rest. The call keeps the quote's
price of a credit, with which the possible loss was computed.
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from gateway.chain.config import get_chain
from gateway.chain.fees import Fees, FeesTooHigh
from gateway.chain.l1_fees import highest_base_fee
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
from relay.pricing import credits_of
from relay.queries.calls import Identity, QuotedTerms
from relay.services.accepting.calls import Approval, Gas
from relay.services.fleet import losses


@dataclass(frozen=True, slots=True)
class Offer:
    """The terms of a quote: the call, the gas and fees to sign it with, and the newest block's base fee in wei."""

    user_id: int
    identity: Identity
    approval: Approval
    base_fee_wei: int
    # The size of the transaction's calldata.
    data_bytes: int
    # The wei of a credit.
    credit_wei: int
    # The version of a sponsor's policy that pays.
    sponsor_version_id: int | None = None


def issue(offer: Offer, *, now: datetime) -> Quote | DomainError:
    """Store and return a quote, and reserve the service's possible loss; or return the reason why there is no quote."""
    gas, fees = offer.approval.gas, offer.approval.fees
    if not offer.approval.is_trusted:
        return QuoteUnavailable("Untrusted code controls its own gas use, so it gets no quote.")
    quote = Quote(
        user_id=offer.user_id,
        digest=offer.identity.digest,
        credits=credits_of(
            fees.highest_cost_wei(gas_limit=gas.limit, data_bytes=offer.data_bytes),
            credit_wei=offer.credit_wei,
        ),
        credit_wei=offer.credit_wei,
        gas_limit=gas.limit,
        max_fee_per_gas_wei=_highest_fee(fees, offer.base_fee_wei),
        max_extra_fee_wei=fees.highest_extra_fee_wei(
            gas_limit=gas.limit, data_bytes=offer.data_bytes, later_seconds=settings.RELAY_QUOTE_SECONDS
        ),
        expires_at=now + timedelta(seconds=settings.RELAY_QUOTE_SECONDS),
        sponsor_version_id=offer.sponsor_version_id,
    )
    highest_wei = gas.limit * quote.max_fee_per_gas_wei + quote.max_extra_fee_wei
    loss_wei = highest_wei - quote.credits * offer.credit_wei
    with transaction.atomic(durable=True):
        quote.save(force_insert=True)
        if losses.reserve(
            key=quote.loss_key, user_id=offer.user_id, amount_wei=loss_wei, kind=Loss.Kind.QUOTE, now=now
        ):
            return quote
        transaction.set_rollback(True)
    return QuoteUnavailable(
        "Open quotes have reserved the service's whole loss budget. Retry later.",
        retry_after=settings.RELAY_QUOTE_SECONDS,
    )


def _highest_fee(fees: Fees, base_fee_wei: int) -> int:
    """Return the highest fee per gas that a new call could offer before the quote expires, in wei."""
    # One block more because the newest one may be old, and one because the call is mined after the quote's last block.
    blocks = math.ceil(settings.RELAY_QUOTE_SECONDS / get_chain().block_seconds) + 2
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
        raise QuoteNotFound("The signed-in profile does not have this quote. Prepare the call again.")
    if terms.digest != identity.digest:
        raise QuoteForOtherCall("The quote is for another call than the signed one.", hash=terms.digest)
    if terms.is_used:
        raise QuoteUsed("A call was already accepted with this quote. Prepare the call again.")
    if terms.expires_at <= now:
        raise QuoteExpired(
            "The quote has expired. Prepare the call again.", expiredAt=int(terms.expires_at.timestamp())
        )


def within(terms: QuotedTerms, approval: Approval, *, data_bytes: int, must_fit: bool = False) -> Approval:
    """
    Return the approval with gas and fees bounded by the quote's reservation. The calldata has `data_bytes` bytes.

    With `must_fit`, the whole gas limit must be within the quoted one, not only the expected gas.

    Raises:
        QuoteOutdated: the call needs more gas than the quote covers.
        FeesTooHigh: the base fee rose faster than the protocol allows, or an operator of the OP stack raised its fees.
    """
    gas, fees = approval.gas, approval.fees
    needed = gas.limit if must_fit else gas.expected
    if needed > terms.gas_limit:
        raise QuoteOutdated(
            f"The call needs {needed} gas; the quote covers {terms.gas_limit}. Prepare the call again.",
            gasLimit=needed,
            quotedGasLimit=terms.gas_limit,
        )
    extra_wei = fees.highest_extra_fee_wei(gas_limit=min(gas.limit, terms.gas_limit), data_bytes=data_bytes)
    if extra_wei > terms.max_extra_fee_wei:
        raise FeesTooHigh(
            "The chain charges more besides gas than the quote covers. Prepare the call again.",
            retry_after=FeesTooHigh.retry_seconds,
            extraFeeWei=str(extra_wei),
            maximumExtraFeeWei=str(terms.max_extra_fee_wei),
        )
    most_wei = terms.max_fee_per_gas_wei
    if fees.expected_price_wei > most_wei:
        raise FeesTooHigh(
            "Gas prices exceed what the quote covers. Retry later, or send the call without the quote.",
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
