"""
Agreement between several nodes, as pure functions.

A single node may lag, be on a minority fork, or lie. Credits and account nonces therefore change only if a quorum of
nodes reports the same.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from gateway.chain.l1_fees import L1Prices
from gateway.chain.types import AccountState, BlockId, ChainView, Head, SendKind, SendOutcome

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Hashable)


def agreed_view(
    views: Sequence[ChainView],
    *,
    transaction_hashes: Sequence[str],
    accounts: Sequence[str],
    heights: Sequence[int] = (),
    needed: int,
) -> ChainView:
    """
    Return the view on which at least `needed` of these views agree.

    For numbers (height, nonce, balance), this is the highest value that `needed` views have reached. A transaction with
    fewer than `needed` equal reports is undecided.
    """
    receipts, undecided = _decided(
        [(view.receipts, view.undecided) for view in views], transaction_hashes, needed
    )
    block_hashes, _ = _decided([(view.block_hashes, frozenset()) for view in views], heights, needed)
    heads = [view.head for view in views]
    return ChainView(
        head=Head(
            number=_reached([head.number for head in heads], needed),
            timestamp=_reached([head.timestamp for head in heads], needed),
            base_fee_wei=_reached([head.base_fee_wei for head in heads], needed),
            block_hash=_hash_of_head(heads, needed),
            l1=_l1_prices(heads, needed),
        ),
        receipts=receipts,
        accounts={
            account: _account(states, needed)
            for account in accounts
            if len(states := [view.accounts[account] for view in views if account in view.accounts]) >= needed
        },
        block_hashes=block_hashes,
        final=_final(views, needed),
        undecided=undecided,
    )


def _decided(
    results: Sequence[tuple[Mapping[Key, Value], frozenset[Key]]], keys: Iterable[Key], needed: int
) -> tuple[dict[Key, Value], frozenset[Key]]:
    """
    Return for each key the value of at least `needed` responses (absence counts as a value), and the undecided keys.

    Each response comes with the keys that it leaves undecided.
    """
    decided: dict[Key, Value] = {}
    undecided = set()
    for key in keys:
        votes = Counter(result.get(key) for result, silent in results if key not in silent)
        value, count = max(votes.items(), key=lambda vote: vote[1], default=(None, 0))
        if count < needed:
            undecided.add(key)
        elif value is not None:
            decided[key] = value
    return decided, frozenset(undecided)


def _final(views: Sequence[ChainView], needed: int) -> BlockId | None:
    [(block, votes)] = Counter(view.final for view in views).most_common(1)
    return block if votes >= needed else None


def _hash_of_head(heads: Sequence[Head], needed: int) -> str:
    """Return the newest block's hash if `needed` heads have the same one; else an empty text."""
    [(block_hash, votes)] = Counter(head.block_hash for head in heads).most_common(1)
    return block_hash if votes >= needed else ""


def _l1_prices(heads: Sequence[Head], needed: int) -> L1Prices | None:
    """Return the dearest L1 prices that `needed` heads have reached."""
    prices = [head.l1 for head in heads if head.l1 is not None]
    prices.sort(key=lambda price: price.expected_fee_wei(data_bytes=0, gas=0), reverse=True)
    return prices[needed - 1] if len(prices) >= needed else None


def _account(states: Sequence[AccountState], needed: int) -> AccountState:
    return AccountState(
        latest_nonce=_reached([state.latest_nonce for state in states], needed),
        confirmed_nonce=_reached([state.confirmed_nonce for state in states], needed),
        balance_wei=_reached([state.balance_wei for state in states], needed),
        highest_nonce=sorted(state.highest_nonce for state in states)[needed - 1],
        has_code=bool(_reached([state.has_code for state in states], needed)),
    )


def _reached(numbers: Sequence[int], needed: int) -> int:
    """Return the highest number that `needed` of them have reached."""
    return sorted(numbers, reverse=True)[needed - 1]


def agreed_outcome(outcomes: Sequence[SendOutcome], *, needed: int) -> SendOutcome:
    """
    Return the outcome of a transaction that was sent to several nodes.

    It is enough that one node accepts it or reports its account nonce as used, because neither makes the service give
    the transaction up. It counts as refused only if `needed` nodes refuse it; otherwise the same bytes are sent again.
    The lowest tip is the one that `needed` nodes take.
    """
    tips = sorted(outcome.least_tip_wei for outcome in outcomes if outcome.least_tip_wei is not None)
    least_tip_wei = tips[needed - 1] if len(tips) >= needed else None
    return replace(_agreed_kind(outcomes, needed), least_tip_wei=least_tip_wei)


def _agreed_kind(outcomes: Sequence[SendOutcome], needed: int) -> SendOutcome:
    for kind in (SendKind.ACCEPTED, SendKind.NONCE_TOO_LOW):
        for outcome in outcomes:
            if outcome.kind is kind:
                return outcome
    refusals = [outcome for outcome in outcomes if outcome.kind is not SendKind.LATER]
    if len(refusals) >= needed:
        refused = [outcome for outcome in refusals if outcome.kind is SendKind.REFUSED]
        underpriced = [outcome for outcome in refusals if outcome.kind is SendKind.UNDERPRICED]
        return refused[0] if len(refused) >= needed or not underpriced else underpriced[0]
    message = next((outcome.message for outcome in outcomes), "")
    return SendOutcome(SendKind.LATER, message)
