"""Relaying under load: accepted and settled per second, and the processor time of each kind of process per call."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devstack.bench.load import Request, Run, relay_calls, send_all, wait_until_settled
from devstack.bench.service import BenchService, Reading, running_service
from devstack.console import say
from devstack.files import write_json

_PROFILES, _WARM_UP, _REST_SECONDS = 60, 60, 6
_READINGS = 2_000


@dataclass(frozen=True)
class Round:
    """So many calls from so many clients at once, from the first post to the last settlement."""

    run: Run
    settled_per_second: float
    used: Reading

    def per_call(self, kinds: Mapping[str, float]) -> dict[str, float]:
        """Return milliseconds per settled call of each kind of process."""
        return {kind: seconds / self.run.answered * 1e3 for kind, seconds in kinds.items()}

    @property
    def service_ms(self) -> float:
        """Milliseconds per settled call of the whole service."""
        return sum(self.per_call(self.used.service).values())

    def figures(self) -> dict[str, object]:
        """Return what is worth keeping."""
        return {
            "clients": self.run.clients,
            "calls": self.run.answered,
            "accepted_per_second": self.run.per_second,
            "settled_per_second": self.settled_per_second,
            "median_accept_ms": self.run.median_ms,
            "cpu_ms_per_settled": self.service_ms,
            "cpu_ms_of_service": self.per_call(self.used.service),
            "cpu_ms_beside": self.per_call(self.used.beside),
            "others_share_of_machine": self.used.of_others,
            "repeats_after_503": self.run.repeats,
        }


def bench_relay(path: Path, *, calls: int, clients: int) -> int:
    """Measure the bare web server, the service at rest and the service under load; write the figures to `path`."""
    with running_service(profiles=_PROFILES) as running:
        say(f"Load of the machine before: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
        bare, reading = bare_rates(running)
        relay_round(running, calls=_WARM_UP, clients=clients, first_channel=1)
        resting = _at_rest(running)
        measured = relay_round(running, calls=calls, clients=clients, first_channel=1 + _WARM_UP)
    _print(measured, bare, resting)
    rest = {kind: seconds / resting.at * 1e3 for kind, seconds in resting.service.items()}
    figures = {"bare_per_second": bare.per_second, "signed_in_per_second": reading.per_second}
    write_json(path, figures | measured.figures() | {"cpu_ms_per_second_at_rest": rest})
    say(f"Written to {path}")
    return 0


def bare_rates(running: BenchService) -> tuple[Run, Run]:
    """Measure, and print, requests that do nothing and requests that only find out who asks."""
    bare = send_all(running.base_url, [Request("GET", "/healthz")] * _READINGS, clients=8)
    me = [Request("GET", "/api/auth/me", wallet.api.token) for wallet in running.wallets]
    reading = send_all(running.base_url, me * (_READINGS // 2 // len(me)), clients=8)
    say("Requests per second at 8 clients, and as a share of the web server with no work")
    say(f"  no work {bare.per_second:8.0f}")
    say(f"  signed-in reading {reading.per_second:8.0f}  {reading.per_second / bare.per_second:.0%}")
    return bare, reading


def relay_round(running: BenchService, *, calls: int, clients: int, first_channel: int) -> Round:
    """
    Post the calls, wait until all are settled, and take the processor times.

    Raises:
        RuntimeError: a call was refused, or did not succeed on the chain.
    """
    requests = relay_calls(running, count=calls, first_channel=first_channel)
    settled, succeeded = running.settled(), running.successes()
    before = running.meter.read()
    run = send_all(running.base_url, requests, clients=clients)
    tail = wait_until_settled(running, count=settled + calls)
    used = running.meter.read().since(before)
    if running.successes() != succeeded + calls:
        raise RuntimeError("a relay call of the benchmark did not succeed")
    return Round(run, calls / (run.seconds + tail), used)


def _at_rest(running: BenchService) -> Reading:
    before = running.meter.read()
    time.sleep(_REST_SECONDS)
    return running.meter.read().since(before)


def _print(measured: Round, bare: Run, resting: Reading) -> None:
    run = measured.run
    say(f"{run.answered} relay calls from {run.clients} clients at once")
    say(f"  accepted/s {run.per_second:8.1f}  {run.per_second / bare.per_second:.1%} of no work")
    say(f"  settled/s  {measured.settled_per_second:8.1f}")
    say(f"  median accept ms {run.median_ms:6.1f}, {run.repeats} repeats after 503")
    say("Processor ms per settled call, and ms per second at rest")
    for kind, spent in measured.per_call(measured.used.service).items():
        say(f"  {kind:15} {spent:8.2f} {resting.service[kind] / resting.at * 1e3:8.1f}")
    say(
        f"  {'the service':15} {measured.service_ms:8.2f} {sum(resting.service.values()) / resting.at * 1e3:8.1f}"
    )
    for kind, spent in measured.per_call(measured.used.beside).items():
        say(f"  {kind:15} {spent:8.2f}   (beside)")
    say(f"Processes of others took {measured.used.of_others:.0%} of the machine meanwhile")
