"""`python -m lab world`: try the product on each client that is at hand, and compare their responses."""

from dataclasses import dataclass

from devstack.console import echo
from lab.world.nodes import CLIENTS, NotAtHand
from lab.world.trial import Trial, report, try_client


@dataclass(frozen=True)
class Options:
    """The clients by name, and seconds of load before and after the reorganisation of each."""

    clients: list[str]
    seconds: float


def run(options: Options) -> int:
    """Try each client; print its responses and what was wrong. Return 1 if anything was, or if no client is at hand."""
    trials: dict[str, Trial] = {}
    for name in options.clients:
        make_node, install = CLIENTS[name]
        try:
            install()
        except NotAtHand as reason:
            echo(f"{name}: not tried, because {reason}")
            continue
        echo(f"{name}:")
        trials[name] = try_client(make_node, seconds=options.seconds)
        report(name, trials[name])
    _print_responses(trials)
    return 1 if any(trial.wrong for trial in trials.values()) or not trials else 0


def _print_responses(trials: dict[str, Trial]) -> None:
    """Print one row for each call: the response of each client, and what the service makes of it."""
    print(f"| call | {' | '.join(trials)} |")
    print("|---" * (len(trials) + 1) + "|")
    for rows in zip(*(trial.answers for trial in trials.values()), strict=True):
        print(f"| {rows[0].call} | {' | '.join(row.text for row in rows)} |")
