"""One round of relay calls: load, the steady part of it, the wait until all is settled, and the books."""

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

# A call is settled three blocks after it was sent: from then on a round is steady.
_WARM_SECONDS = 4.0
_TAIL_SECONDS, _TAIL_POLL_SECONDS = 120, 0.5
_FILL_SECONDS = 120
# How long a request for a status waits at most, and so how long it takes until all clients wait.
WAIT_SECONDS = 20
_CLIENTS_BESIDE = 8
_LATENCIES = ("p50_ms", "p90_ms", "p99_ms")


@dataclass(frozen=True)
class Sample:
    """What had been used and settled at a time."""

    reading: Reading
    settled: int


@dataclass(frozen=True)
class Round:
    """A round and everything measured in it."""

    sent: Sent
    outcome: Outcome
    whole: Reading
    samples: Sequence[Sample]
    own_seconds: float

    def figures(self) -> dict[str, Any]:
        """Return what is worth keeping; `cpu_ms` is per settled call, from the first post to the last settlement."""
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
    Return rate and cost between the first and the last sample that are neither start nor tail; None if too short.

    The cost is divided by the mean of the calls accepted and settled meanwhile: web works for the former, the
    relay worker for the latter.
    """
    first, last = sent.started + _WARM_SECONDS, sent.started + sent.seconds
    inner = [sample for sample in samples if first <= sample.reading.at <= last]
    if len(inner) < 2 or inner[-1].settled == inner[0].settled:
        return None
    used, settled = inner[-1].reading.since(inner[0].reading), inner[-1].settled - inner[0].settled
    times = (inner[0].reading.at, inner[-1].reading.at)
    accepted = sum(times[0] <= answer.answered_at < times[1] for answer in sent.accepted)
    return {
        "seconds": used.at,
        "accepted_per_second": accepted / used.at,
        "settled_per_second": settled / used.at,
        "cpu_ms": used.per_call((accepted + settled) / 2),
    }


def relay_round(stack: Stack, records: Records, load: Load) -> dict[str, Any]:
    """Send the calls, wait until all of them are settled, compare the books, and return the figures."""
    newest, own = records.newest(), time.process_time()
    samples: list[Sample] = []

    def sample() -> None:
        samples.append(Sample(stack.meter.read(), records.settled_since(newest)))

    sent = send(stack.base_url, load, meanwhile=sample)
    _until_settled(records, newest, len(sent.accepted), sample)
    whole = samples[-1].reading.since(samples[0].reading)
    own_seconds = time.process_time() - own + sent.cpu_seconds
    outcome = records.outcome_since(newest, accepted=len(sent.accepted))
    return Round(sent, outcome, whole, samples, own_seconds).figures()


def in_flight_round(
    stack: Stack, records: Records, lanes: Sequence[str], *, before: int, clients: int
) -> dict[str, Any]:
    """
    Let the node mine nothing, have `before` calls accepted, then measure how the others are accepted.

    Then all are mined and settled, and the books are compared. `cpu_ms` is per call accepted while measured.
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
    Accept calls from eight clients while others wait for the status of earlier calls, and before and after that alone.

    Of the four lanes, the first are the calls that are waited for; the node mines nothing until all is measured. What
    is in flight grows meanwhile, so the second and the last, which are accepted alone, count together. `waits` returns
    the load of those who wait, given the newest call before them. The figures are those of the calls accepted while
    others waited, with their ratio to the ones alone.
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
        "waits_answered": len(waited.accepted),
        "cpu_ms": used.per_call(max(1, len(beside.accepted))),
        "others_share_of_machine": used.share_of_others(beside.cpu_seconds),
        "wrong": outcome.wrong + [f"refused: {dict(refusals)}"] * bool(refusals),
    }


def _metered(stack: Stack, lane: Sequence[str]) -> tuple[Sent, Reading]:
    before = stack.meter.read()
    sent = send(stack.base_url, Load([lane], _CLIENTS_BESIDE, _FILL_SECONDS))
    return sent, stack.meter.read().since(before)


def read_round(stack: Stack, load: Load) -> dict[str, Any]:
    """Send requests that change nothing that is settled later; `cpu_ms` is per request."""
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
    """Wait for the last settlement or too long; what is missing then is found by the comparison of the books."""
    deadline = time.monotonic() + _TAIL_SECONDS
    while records.settled_since(newest) < calls and time.monotonic() < deadline:
        time.sleep(_TAIL_POLL_SECONDS)
    sample()
