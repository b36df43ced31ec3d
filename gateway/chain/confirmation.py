"""
A refusal that ends something for a caller needs a second node.

Requests read from one node. Its failures look like refusals: code that is missing, a revert, no permission. So whatever
one node's reads refuse for good is decided again from another node's reads. With a single node, nothing changes.
"""

from collections.abc import Callable, Collection
from typing import Generic, NamedTuple, TypeVar

from gateway.chain.client import get_chain_client
from gateway.chain.errors import NodeUnavailable, ResultTooLarge
from gateway.chain.nodes import heard_nodes
from gateway.common.errors import DomainError

Value = TypeVar("Value")
_MOST_WITNESSES = 2


def confirmed(
    decide: Callable[[], Value],
    *,
    again: Callable[[], Value] | None = None,
    heard: Collection[str] = (),
    refuses: Callable[[Value], bool] = lambda _: False,
) -> Value:
    """
    Return what `decide` returns, unless it refuses on the word of one node only.

    It refuses by raising a final error, or by a value that `refuses` recognises. Then up to two other nodes decide, by
    `again` if it is given. The first of them that refuses too confirms it. If all that respond approve, the call is
    approved; if none responds, the refusal stands. `heard` names nodes that `decide` does not read but depends on.

    Raises:
        DomainError: what `decide` raises, if another node confirms it or none responds.
        NodeUnavailable: no node responded.
    """
    with heard_nodes() as responding:
        outcome = _outcome_of(decide)
    refusing = responding | set(heard)
    if _is_refusal(outcome, refuses):
        outcome = _of_witnesses(again or decide, refusing, refuses) or outcome
    if isinstance(outcome, DomainError):
        raise outcome
    return outcome.value


def needs_witness(refusal: DomainError) -> bool:
    """Return whether another node has to confirm this refusal."""
    return is_final(refusal) and _has_others(())


class _Decided(NamedTuple, Generic[Value]):
    value: Value


_Outcome = _Decided[Value] | DomainError


def _of_witnesses(
    decide: Callable[[], Value], refusing: Collection[str], refuses: Callable[[Value], bool]
) -> _Outcome[Value] | None:
    """Return what the nodes decide that have not refused yet: the first refusal, or an approval; None without any."""
    outcome: _Outcome[Value] | None = None
    asked = set(refusing)
    for _ in range(_MOST_WITNESSES):
        if not _has_others(asked):
            break
        try:
            with heard_nodes(without=asked) as responding:
                outcome = _outcome_of(decide)
        except NodeUnavailable:
            break
        if _is_refusal(outcome, refuses):
            return outcome
        asked |= responding
    if outcome is not None:
        get_chain_client().doubt(refusing)
    return outcome


def _outcome_of(decide: Callable[[], Value]) -> _Outcome[Value]:
    try:
        return _Decided(decide())
    except DomainError as error:
        if error.is_outage:
            raise
        return error


def _is_refusal(outcome: _Outcome[Value], refuses: Callable[[Value], bool]) -> bool:
    return is_final(outcome) if isinstance(outcome, DomainError) else refuses(outcome.value)


def is_final(error: DomainError) -> bool:
    """Return whether the error tells callers not to retry. The size of a response is already another node's word."""
    return not error.retryable and not isinstance(error, ResultTooLarge)


def _has_others(heard: Collection[str]) -> bool:
    return len(get_chain_client().nodes()) > max(1, len(heard))
