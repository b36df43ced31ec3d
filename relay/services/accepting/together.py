"""
Runs the stories of concurrent calls in batches: each step once for all calls that wait for it.

One statement reads the rows of all, one node request their chain, one transaction accepts them. A single call is a
batch of one. `relay.services.accepting.batching` collects the calls of several threads.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache

from django.conf import settings

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.errors import no_node_responds
from gateway.common.errors import DomainError
from relay.queries.calls import CallKey, rows_of_calls
from relay.services.accepting import unsigned
from relay.services.accepting.acceptance import accept_together
from relay.services.accepting.batching import Batcher, Seal, WaitLimits
from relay.services.accepting.calls import Step, Story, SubmittedCall
from sponsors.queries import offers_for
from sponsors.services.refusals import Refused, record


class Progress:
    """
    The state of a call's story: the step that it waits for, and at its end its result.

    `result` is the hash, or the error to raise; None before the end.
    """

    __slots__ = ("_story", "call", "result", "step")

    def __init__(self, call: SubmittedCall, story: Story) -> None:
        """Run the story to its first step."""
        self.call, self._story = call, story
        self.step: Step | None = None
        self.result: str | Exception | None = None
        self.resume()

    def resume(self, error: Exception | None = None) -> None:
        """Run the story to its next step, after a step that is done or that ended with the error."""
        try:
            self.step = next(self._story) if error is None else self._story.throw(error)
        except StopIteration as end:
            self.step, self.result = None, end.value
        except Exception as failure:  # noqa: BLE001 - raised by the call's own thread
            self.step, self.result = None, failure


def run(call: SubmittedCall, story: Story) -> str:
    """Run a call's story to its end; return the hash, or raise its error."""
    progress = Progress(call, story)
    while progress.step is not None:
        if progress.step is Step.ALONE:
            progress.resume()
        else:
            batcher(get_chain().id)(progress)
    if isinstance(progress.result, str):
        return progress.result
    raise progress.result or RuntimeError("the story of a call ended without a result")


def advance(progresses: Sequence[Progress], seal: Seal) -> Sequence[Progress]:
    """
    Do each step once for all calls that wait for it.

    Stories run in the thread of the batch's leader, and a story that ends early waits for the end of the pass. A call
    may need more: its own thread then resumes it, or it joins the next pass. `seal` returns the places of the callers
    that have not left.
    """
    # Calls that were approved in an earlier pass are accepted before new ones.
    approved_before = {one for one in progresses if one.step is Step.ACCEPTANCE}
    _do(Step.ROWS, _read_rows, progresses)
    _do(Step.CHAIN, _read_chain, progresses)
    remaining = seal()
    staying = [one for place, one in enumerate(progresses) if place in remaining]
    staying.sort(key=lambda one: one not in approved_before)
    _do(Step.OFFER, _read_offers, staying)
    _do(Step.ACCEPTANCE, _accept, staying)
    _do(Step.SIGNATURE, _sign, staying)
    return progresses


@cache
def batcher(_chain_id: int) -> Batcher[Progress, Progress]:
    """Return the batcher of one chain's calls; all threads in it have that chain as the current one."""
    return Batcher(
        advance,
        # A batch of this size takes the node and PostgreSQL a few milliseconds.
        most=32,
        # The callers of the last batch return one after the other. With 8 clients, waiting up to 8 ms instead of 3 ms
        # makes batches larger, and calls a tenth cheaper and faster. Calls that arrive independently form small
        # batches; after a small batch, no run waits.
        pause_seconds=0.003,
        longest_wait_seconds=0.008,
        # One user's calls, however dear, leave places in each batch to others.
        owner_of=lambda progress: progress.call.caller.user_id,
        share=4,
        # Requests wait here for the chain; a node that hangs must not occupy all threads.
        wait_limits=WaitLimits(
            seconds=0.8, callers=max(1, settings.WEB_THREADS // 4), refusal=no_node_responds
        ),
    )


def _do(step: Step, do: Callable[[Sequence[Progress]], None], progresses: Sequence[Progress]) -> None:
    waiting = [one for one in progresses if one.step is step]
    if not waiting:
        return
    try:
        do(waiting)
    except DomainError as refusal:
        # An outage ends the stories that wait for this step, and no others.
        for one in waiting:
            one.resume(refusal)


def _read_rows(waiting: Sequence[Progress]) -> None:
    calls = [one.call for one in waiting]
    keys = [
        CallKey(
            call.identity,
            call.signed.key_manager,
            call.caller.user_id,
            call.caller.session_id,
            call.now,
            call.quote_id,
        )
        for call in calls
    ]
    for one, rows in zip(waiting, rows_of_calls(keys), strict=True):
        one.call.rows = rows
        one.resume()


def _read_chain(waiting: Sequence[Progress]) -> None:
    states = get_chain_client().read_relay_states([one.call.query for one in waiting])
    for one, state in zip(waiting, states, strict=True):
        one.call.state = state
        one.resume()


def _read_offers(waiting: Sequence[Progress]) -> None:
    for one, offer in zip(waiting, offers_for([one.call.bill.wanted for one in waiting]), strict=True):
        one.call.offer = offer
        one.resume()
    record_sponsor_refusals([one.call for one in waiting])


def record_sponsor_refusals(calls: Sequence[SubmittedCall]) -> None:
    """Record the calls that their sponsors, whose offers were just read, do not pay."""
    refused = [
        Refused(call.offer.slug, call.sponsor_refusal, _key_of(call), call.bill, call.responses)
        for call in calls
        if call.offer and call.sponsor_refusal
    ]
    record(refused, now=calls[0].now)


def _key_of(call: SubmittedCall) -> str:
    """Return what a preparation, the call and its repeats have in common."""
    signed, user_id = call.signed, call.caller.user_id
    parts = f"{user_id} {get_chain().id} {signed.key_manager} {signed.relay_nonce} ".encode()
    return hashlib.sha256(parts + signed.payload).hexdigest()


def _accept(waiting: Sequence[Progress]) -> None:
    done = accept_together([one.call for one in waiting])
    for one in waiting:
        if one.call in done:
            one.resume()


def _sign(waiting: Sequence[Progress]) -> None:
    outcomes = unsigned.complete([unsigned.of_call(one.call) for one in waiting])
    for one, outcome in zip(waiting, outcomes, strict=True):
        if isinstance(outcome, str):
            one.call.columns["transaction_hash"] = outcome
        one.resume(outcome if isinstance(outcome, Exception) else None)
