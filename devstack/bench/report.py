"""`make bench`: runs the measurements and prints them; figures drift with the machine, ratios hold."""

from pathlib import Path

from devstack.bench.load import Run
from devstack.bench.primitives import compare
from devstack.bench.relay import bare_rates, relay_round
from devstack.bench.service import BenchService, running_service
from devstack.console import say
from devstack.files import write_json

_PROFILES, _CALLS = 60, 240
_CLIENTS = (1, 8, 32)


def bench(path: Path) -> int:
    """Measure, print, and write the figures to `path`."""
    figures: dict[str, object] = {"primitives": _primitives()}
    with running_service(profiles=_PROFILES) as running:
        bare, reading = bare_rates(running)
        figures["bare_per_second"], figures["signed_in_per_second"] = bare.per_second, reading.per_second
        say("Relay calls: accepted/s, settled/s, median accept ms, CPU ms of the service per settled call")
        figures["execute"] = [
            _relay(running, clients, round_, bare) for round_, clients in enumerate(_CLIENTS)
        ]
    write_json(path, figures)
    say(f"Written to {path}")
    return 0


def _primitives() -> dict[str, dict[str, float]]:
    say("One step of a relay call, microseconds (median): ours, the general-purpose library, ratio")
    rows = compare()
    for row in rows:
        say(f"  {row.name:28} {row.ours:8.1f} {row.library:8.1f}  × {row.ratio:.1f}")
    return {row.name: {"ours": row.ours, "library": row.library, "ratio": row.ratio} for row in rows}


def _relay(running: BenchService, clients: int, round_: int, bare: Run) -> dict[str, object]:
    found = relay_round(running, calls=_CALLS, clients=clients, first_channel=1 + round_ * _CALLS)
    share = found.run.per_second / bare.per_second
    say(
        f"  {clients:3} clients {found.run.per_second:7.1f} {found.settled_per_second:7.1f}"
        f" {found.run.median_ms:8.1f} {found.service_ms:7.1f}"
        f"   {share:.1%} of no work, {found.run.repeats} repeats after 503"
    )
    return found.figures() | {"share_of_no_work": share}
