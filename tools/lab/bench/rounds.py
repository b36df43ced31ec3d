"""One round of relay calls: load, its steady part, the wait for settlement, and reconciliation."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lab.bench.load import Load, Sent, send
from lab.bench.meter import Reading
from lab.bench.records import Outcome, Records
from lab.bench.stack import BLOCK_SECONDS, Stack

# A call is settled three blocks after it was sent; after that the load is steady.
_WARM_SECONDS = 4.0
_TAIL_SECONDS, _TAIL_POLL_SECONDS = 120, 0.5
_FILL_SECONDS = 120
# The maximum wait of a long-polling request, after which all clients are waiting.
WAIT_SECONDS = 20
_CLIENTS_BESIDE = 8
_LATENCIES = ("p50_ms", "p90_ms", "p99_ms")


@dataclass(frozen=True)
class Sample:
    """Usage and settled calls at a time."""

    reading: Reading
    settled: int


@dataclass(frozen=True)
class Round:
    """A round and its measurements."""

    sent: Sent
    outcome: Outcome
    whole: Reading
    samples: Sequence[Sample]
    own_seconds: float

    def figures(self) -> dict[str, Any]:
        """Return the figures; `cpu_ms` is per settled call, from the first request to the last settlement."""
        calls = max(1, self.outcome.calls)
        return self.sent.figures() | {
            "settled": self.outcome.calls,
            "settled_per_second": self.outcome.calls / self.outcome.seconds if self.outcome.seconds else 0.0,
            "seconds_to_last_settlement": self.outcome.seconds,
            "cpu_ms": self.whole.per_call(calls),
            "steady": steady_part(self.samples, self.sent),
            "others_share_of_machine": self.whole.share_of_others(self.own_seconds),
            "wrong": self.outcome.wrong,
        }


def steady_part(samples: Sequence[Sample], sent: Sent) -> dict[str, Any] | None:
    """
    Return rate and CPU cost between the first and last sample of the steady part; None if it is too short.

    The cost is divided by the mean of the accepted and the settled calls: the web processes work for the former, the
    relay worker for the latter.
    """
    first, last = sent.started + _WARM_SECONDS, sent.started + sent.seconds
    inner = [sample for sample in samples if first <= sample.reading.at <= last]
    if len(inner) < 2 or inner[-1].settled == inner[0].settled:
        return None
    used, settled = inner[-1].reading.since(inner[0].reading), inner[-1].settled - inner[0].settled
    times = (inner[0].reading.at, inner[-1].reading.at)
    accepted = sum(times[0] <= result.answered_at < times[1] for result in sent.accepted)
    return {
        "seconds": used.at,
        "accepted_per_second": accepted / used.at,
        "settled_per_second": settled / used.at,
        "cpu_ms": used.per_call((accepted + settled) / 2),
    }


def relay_round(stack: Stack, records: Records, load: Load, *, is_sponsored: bool = False) -> dict[str, Any]:
    """Send the calls, wait until all are settled, reconcile, and return the figures."""
    newest, own = records.newest(), time.process_time()
    samples: list[Sample] = []

    def sample() -> None:
        samples.append(Sample(stack.meter.read(), records.settled_since(newest)))

    sent = send(stack.base_url, load, meanwhile=sample)
    _until_settled(records, newest, len(sent.accepted), sample)
    whole = samples[-1].reading.since(samples[0].reading)
    own_seconds = time.process_time() - own + sent.cpu_seconds
    outcome = records.outcome_since(newest, accepted=len(sent.accepted), is_sponsored=is_sponsored)
    return Round(sent, outcome, whole, samples, own_seconds).figures()


def in_flight_round(
    stack: Stack, records: Records, lanes: Sequence[str], *, before: int, clients: int
) -> dict[str, Any]:
    """
    Stop mining, have `before` calls accepted, then measure how the others are accepted.

    Then all are mined, settled and reconciled. `cpu_ms` is per call accepted during the measurement.
    """
    newest = records.newest()
    with _nothing_mined(stack):
        first = send(stack.base_url, Load([lanes[:before]], clients, _FILL_SECONDS))
        used_before = stack.meter.read()
        sent = send(stack.base_url, Load([lanes[before:]], clients, _FILL_SECONDS))
        used = stack.meter.read().since(used_before)
    accepted = len(first.accepted) + len(sent.accepted)
    _until_settled(records, newest, accepted, lambda: None)
    outcome = records.outcome_since(newest, accepted=accepted)
    return sent.figures() | {
        "in_flight": [before, accepted],
        "cpu_ms": used.per_call(max(1, len(sent.accepted))),
        "others_share_of_machine": used.share_of_others(sent.cpu_seconds),
        "wrong": outcome.wrong + [f"refused: {first.refusals | sent.refusals}"] * (accepted < len(lanes)),
    }


def waiting_round(
    stack: Stack, records: Records, lanes: Sequence[Sequence[str]], waits: Callable[[int], Load]
) -> dict[str, Any]:
    """
    Accept calls from eight clients while others long-poll for the status of earlier calls, and before and after that.

    The first of the four lanes has the calls whose status is polled; the node mines nothing during the measurement.
    The number of calls in flight grows, so the second and the last lane, without pollers, are counted together.
    `waits` returns the pollers' load, given the newest call before them. The figures are those of the calls accepted
    beside the pollers, with their ratio to the calls without.
    """
    newest = records.newest()
    with ThreadPoolExecutor(1) as thread, _nothing_mined(stack):
        first = send(stack.base_url, Load([lanes[0]], _CLIENTS_BESIDE, _FILL_SECONDS))
        before, used_before = _metered(stack, lanes[1])
        waiting = thread.submit(send, stack.base_url, waits(newest))
        time.sleep(WAIT_SECONDS)
        beside, used = _metered(stack, lanes[2])
        waited = waiting.result()
        after, used_after = _metered(stack, lanes[3])
        stack.rpc.call("evm_setIntervalMining", BLOCK_SECONDS)
    everything = (first, before, waited, beside, after)
    accepted = sum(len(sent.accepted) for sent in everything if sent is not waited)
    _until_settled(records, newest, accepted, lambda: None)
    outcome = records.outcome_since(newest, accepted=accepted)
    refusals = sum((Counter(sent.refusals) for sent in everything), Counter[str]())
    alone = replace(before, answers=[*before.answers, *after.answers]).figures()
    cpu_before, cpu_after = (
        one.per_call(max(1, len(sent.accepted))) for one, sent in ((used_before, before), (used_after, after))
    )
    figures = beside.figures()
    return figures | {
        "alone": {name: alone[name] for name in _LATENCIES}
        | {"cpu_ms": {part: (cpu_before[part] + cpu_after[part]) / 2 for part in cpu_before}},
        "times_alone": {name: figures[name] / alone[name] for name in _LATENCIES},
        "waits_served": len(waited.accepted),
        "cpu_ms": used.per_call(max(1, len(beside.accepted))),
        "others_share_of_machine": used.share_of_others(beside.cpu_seconds),
        "wrong": outcome.wrong + [f"refused: {dict(refusals)}"] * bool(refusals),
    }


def creation_round(stack: Stack, records: Records, load: Load) -> dict[str, Any]:
    """Create profiles, wait until all are settled, reconcile; `cpu_ms` is per accepted creation."""
    newest, before = records.newest(), stack.meter.read()
    sent = send(stack.base_url, load)
    _until_settled(records, newest, len(sent.accepted), lambda: None)
    used = stack.meter.read().since(before)
    outcome = records.outcome_since(newest, accepted=len(sent.accepted), is_creation=True)
    return sent.figures() | {
        "settled_per_second": outcome.calls / outcome.seconds if outcome.seconds else 0.0,
        "cpu_ms": used.per_call(max(1, len(sent.accepted))),
        "others_share_of_machine": used.share_of_others(sent.cpu_seconds),
        "wrong": outcome.wrong + [f"refused: {sent.refusals}"] * bool(sent.refusals),
    }


def beside_round(stack: Stack, records: Records, lanes: Sequence[Load], campaign: Load) -> dict[str, Any]:
    """
    Relay calls beside a campaign that creates profiles, and as many seconds before and after it.

    `lanes` has the three loads. The figures are those of the calls beside the campaign, with their ratio to the mean of
    those without; `cpu_ms` contains the campaign's share.
    """
    newest = records.newest()
    before, _ = _until_done(stack, records, lanes[0])
    with ThreadPoolExecutor(1) as thread:
        creating = thread.submit(send, stack.base_url, campaign)
        beside, used = _until_done(stack, records, lanes[1])
        created = creating.result()
    after, _ = _until_done(stack, records, lanes[2])
    accepted = sum(len(sent.accepted) for sent in (before, beside, after))
    _until_settled(records, newest, accepted + len(created.accepted), lambda: None)
    wrong = records.outcome_since(newest, accepted=accepted).wrong
    wrong += records.outcome_since(newest, accepted=len(created.accepted), is_creation=True).wrong
    refusals = sum((Counter(sent.refusals) for sent in (before, beside, after)), Counter[str]())
    names = ("accepted_per_second", *_LATENCIES)
    figures, without = beside.figures(), [sent.figures() for sent in (before, after)]
    alone = {name: sum(one[name] for one in without) / len(without) for name in names}
    return figures | {
        "alone": alone,
        "times_alone": {name: figures[name] / alone[name] for name in names},
        "creations_per_second": len(created.accepted) / created.seconds,
        "creations_refused": created.refusals,
        "cpu_ms": used.per_call(max(1, len(beside.accepted))),
        "others_share_of_machine": used.share_of_others(beside.cpu_seconds + created.cpu_seconds),
        "wrong": wrong + [f"refused: {dict(refusals)}"] * bool(refusals),
    }


def _until_done(stack: Stack, records: Records, load: Load) -> tuple[Sent, Reading]:
    """Send the calls and wait until as many are settled."""
    newest, before = records.newest(), stack.meter.read()
    sent = send(stack.base_url, load)
    _until_settled(records, newest, len(sent.accepted), lambda: None)
    return sent, stack.meter.read().since(before)


def _metered(stack: Stack, lane: Sequence[str]) -> tuple[Sent, Reading]:
    before = stack.meter.read()
    sent = send(stack.base_url, Load([lane], _CLIENTS_BESIDE, _FILL_SECONDS))
    return sent, stack.meter.read().since(before)


def read_round(stack: Stack, load: Load) -> dict[str, Any]:
    """Send requests that cause no later settlement; `cpu_ms` is per request."""
    before = stack.meter.read()
    sent = send(stack.base_url, load)
    used = stack.meter.read().since(before)
    return sent.figures() | {
        "cpu_ms": used.per_call(max(1, len(sent.accepted))),
        "others_share_of_machine": used.share_of_others(sent.cpu_seconds),
        "wrong": [f"refused: {sent.refusals}"] if sent.refusals else [],
    }


@contextmanager
def _nothing_mined(stack: Stack) -> Iterator[None]:
    stack.rpc.call("evm_setIntervalMining", 0)
    try:
        yield
    finally:
        stack.rpc.call("evm_setIntervalMining", BLOCK_SECONDS)


def _until_settled(records: Records, newest: int, calls: int, sample: Callable[[], None]) -> None:
    """Wait for the last settlement or the timeout; reconciliation reports missing settlements."""
    deadline = time.monotonic() + _TAIL_SECONDS
    while records.settled_since(newest) < calls and time.monotonic() < deadline:
        time.sleep(_TAIL_POLL_SECONDS)
    sample()
