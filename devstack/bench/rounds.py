"""One round of relay calls: load, the steady part of it, the wait until all is settled, and the books."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from devstack.bench.load import Load, Sent, send
from devstack.bench.meter import Reading
from devstack.bench.records import Outcome, Records
from devstack.bench.stack import Stack

# A call is settled three blocks after it was sent: from then on a round is steady.
_WARM_SECONDS = 4.0
_TAIL_SECONDS = 120


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

    def figures(self) -> dict[str, object]:
        """Return what is worth keeping; `cpu_ms` is per settled call, from the first post to the last settlement."""
        calls = max(1, self.outcome.calls)
        steady = steady_part(self.samples, self.sent.started, self.sent.started + self.sent.seconds)
        return self.sent.figures() | {
            "settled": self.outcome.calls,
            "settled_per_second": self.outcome.calls / self.outcome.seconds if self.outcome.seconds else 0.0,
            "seconds_to_last_settlement": self.outcome.seconds,
            "cpu_ms": self.whole.per_call(calls),
            "steady": steady,
            "others_share_of_machine": self.whole.share_of_others(self.own_seconds),
            "wrong": self.outcome.wrong,
        }


def steady_part(samples: Sequence[Sample], started: float, ended: float) -> dict[str, object] | None:
    """Return rate and cost between the first and the last sample that are neither start nor tail; None if too short."""
    inner = [sample for sample in samples if started + _WARM_SECONDS <= sample.reading.at <= ended]
    if len(inner) < 2 or inner[-1].settled == inner[0].settled:
        return None
    used, settled = inner[-1].reading.since(inner[0].reading), inner[-1].settled - inner[0].settled
    return {"seconds": used.at, "settled_per_second": settled / used.at, "cpu_ms": used.per_call(settled)}


def relay_round(stack: Stack, records: Records, load: Load, *, thoroughly: bool) -> Round:
    """Send the calls, wait until all of them are settled, and compare the books."""
    newest = records.newest()
    own = time.process_time()
    samples: list[Sample] = []

    def sample() -> None:
        samples.append(Sample(stack.meter.read(), records.settled_since(newest)))

    sent = send(stack.base_url, load, meanwhile=sample)
    accepted = len(sent.accepted)
    deadline = time.monotonic() + _TAIL_SECONDS
    while (not samples or samples[-1].settled < accepted) and time.monotonic() < deadline:
        time.sleep(0.5)
        sample()
    whole = samples[-1].reading.since(samples[0].reading)
    own_seconds = time.process_time() - own + sent.cpu_seconds
    outcome = records.outcome_since(newest, accepted=accepted, thoroughly=thoroughly)
    return Round(sent, outcome, whole, samples, own_seconds)
