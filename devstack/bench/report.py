"""`make bench`: runs the measurements and prints them; figures drift with the machine, ratios hold."""

from pathlib import Path

from devstack.bench.load import Request, Run, cpu_seconds, press, relay_calls, wait_until_settled
from devstack.bench.primitives import compare
from devstack.bench.stage import Stage, stage
from devstack.console import say
from devstack.private_file import write_json

_PROFILES, _CALLS = 60, 240
_CLIENTS = (1, 8, 32)


def bench(path: Path) -> int:
    """Measure, print, and write the figures to `path`."""
    figures: dict[str, object] = {"primitives": _primitives()}
    with stage(profiles=_PROFILES) as running:
        bare, reading = _plain(running)
        figures["bare_per_second"], figures["signed_in_per_second"] = bare.per_second, reading.per_second
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


def _plain(running: Stage) -> tuple[Run, Run]:
    bare = press(running.base_url, [Request("GET", "/healthz")] * 2_000, clients=8)
    me = [Request("GET", "/api/auth/me", wallet.api.token) for wallet in running.wallets] * 20
    reading = press(running.base_url, me, clients=8)
    say("Requests per second at 8 clients, and as a share of the web server with no work")
    say(f"  no work {bare.per_second:8.0f}")
    say(f"  signed-in reading {reading.per_second:8.0f}  {reading.per_second / bare.per_second:.0%}")
    say("Relay calls: accepted/s, settled/s, median accept ms, CPU ms of the service per settled call")
    return bare, reading


def _relay(running: Stage, clients: int, round_: int, bare: Run) -> dict[str, float]:
    calls = relay_calls(running, count=_CALLS, first_channel=1 + round_ * _CALLS)
    before, cpu_before = running.settled(), cpu_seconds(running)
    run = press(running.base_url, calls, clients=clients)
    tail = wait_until_settled(running, count=before + _CALLS)
    if running.successes() != before + _CALLS:
        raise RuntimeError("a relay call of the benchmark did not succeed")
    cpu_ms = (cpu_seconds(running) - cpu_before) / _CALLS * 1e3
    settled = _CALLS / (run.seconds + tail)
    share = run.per_second / bare.per_second
    say(
        f"  {clients:3} clients {run.per_second:7.1f} {settled:7.1f} {run.median_ms:8.1f} {cpu_ms:7.1f}"
        f"   {share:.1%} of no work, {run.repeats} repeats after 503"
    )
    return {
        "clients": clients,
        "accepted_per_second": run.per_second,
        "settled_per_second": settled,
        "median_accept_ms": run.median_ms,
        "cpu_ms_per_settled": cpu_ms,
        "share_of_no_work": share,
        "repeats_after_503": run.repeats,
    }
