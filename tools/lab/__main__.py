"""The lab's commands, such as `python -m lab chaos`: they measure the product, break it, or rehearse its operation."""

import argparse
import secrets
import sys
from dataclasses import fields
from pathlib import Path

from devstack.console import echo_error
from devstack.files import DATA
from devstack.process_lifetime import run_guarded, unwind_on_signals
from lab.bench.options import add_bench_options

# A copy of `devstack.signing.KeyPlace`, whose import takes a second.
_PLACES = ("keystore", "pkcs11", "kms")
_RESULTS = DATA / "lab"


def main() -> int:
    """Run the command that the arguments name; return its exit status."""
    options = _parser().parse_args()
    try:
        if not options.guarded:
            return int(options.action(options))
        unwind_on_signals()  # the imports of a command take a second
        return run_guarded(lambda: int(options.action(options)))
    except RuntimeError as error:
        echo_error(f"✗ {error}")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the stack's data")
    # Whether all processes of the command must end with it.
    parser.set_defaults(guarded=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser(
        "bench", help="measure the relay under load, alone or beside another commit", allow_abbrev=False
    )
    add_bench_options(bench)
    bench.set_defaults(action=_bench)
    callers = commands.add_parser(
        "callers", help="measure how much one costly caller slows the others, in alternating rounds"
    )
    callers.add_argument(
        "--callers", type=lambda text: text.split(","), default=[""], help="comma-separated prefixes of names"
    )
    callers.add_argument("--rounds", type=int, default=5, help="alone and beside (default: 5)")
    callers.add_argument("--seconds", type=float, default=10, help="of load for each round (default: 10)")
    callers.add_argument(
        "--rate", type=float, default=9, help="calls a second of the caller (default: 9, below 600/minute)"
    )
    callers.add_argument("--results", type=Path, default=_RESULTS / "callers.json", help="the file to write")
    callers.set_defaults(action=_callers)
    chaos = commands.add_parser("chaos", help="cause faults under load, then verify every accepted call")
    chaos.add_argument(
        "--minutes", type=float, default=60, help="start no new fault after this time (default: 60)"
    )
    chaos.add_argument(
        "--faults", type=lambda text: text.split(","), default=[""], help="comma-separated prefixes of names"
    )
    chaos.add_argument(
        "--times", type=int, default=25, help="trials per fault, earlier runs included (default: 25)"
    )
    chaos.add_argument("--results", type=Path, default=_RESULTS / "results.json", help="the file to add to")
    chaos.set_defaults(action=_chaos, guarded=True)
    mutated = commands.add_parser(
        "mutated-answers", help="let one node of one, two and three answer nonsense under load, then verify"
    )
    mutated.add_argument("--count", type=int, default=2_000, help="mutations in all (default: 2,000)")
    mutated.add_argument(
        "--nodes",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[1, 2, 3],
        help="numbers of nodes, comma-separated (default: 1,2,3)",
    )
    mutated.add_argument("--seed", type=int, default=1, help="seed of the mutations (default: 1)")
    mutated.add_argument("--results", type=Path, default=_RESULTS / "mutated.json", help="the file to write")
    mutated.set_defaults(action=_mutated, guarded=True)
    signers = commands.add_parser(
        "signers", help="kill and stall the signing process for each place of the keys, then verify"
    )
    signers.add_argument(
        "--calls", type=int, default=2_000, help="calls for each place of the keys (default: 2,000)"
    )
    signers.add_argument(
        "--keys",
        type=lambda text: text.split(","),
        default=["local", *_PLACES],
        help=f"places of the keys, comma-separated (default: local,{','.join(_PLACES)})",
    )
    signers.add_argument("--results", type=Path, default=_RESULTS / "signers.json", help="the file to write")
    signers.set_defaults(action=_signers, guarded=True)
    cluster = commands.add_parser(
        "cluster", help="the service on many hosts, all of them on this machine (root)"
    )
    cluster.add_argument("--once", action="store_true", help="end after a first relay call")
    cluster.set_defaults(action=_cluster, guarded=True)
    trials = commands.add_parser(
        "cluster-test", help="kill, stop and cut off servers of a cluster, then verify every accepted call"
    )
    trials.add_argument(
        "--minutes", type=float, default=60, help="start no new fault after this time (default: 60)"
    )
    trials.add_argument(
        "--faults", type=lambda text: text.split(","), default=[""], help="comma-separated prefixes of names"
    )
    trials.add_argument(
        "--times", type=int, default=10, help="trials per fault, earlier runs included (default: 10)"
    )
    trials.add_argument("--asynchronous", action="store_true", help="no commit waits for a standby")
    trials.add_argument("--results", type=Path, default=_RESULTS / "cluster.json", help="the file to add to")
    trials.set_defaults(action=_cluster_test, guarded=True)
    throughput = commands.add_parser(
        "cluster-throughput",
        help="measure relaying in a cluster of one to three web hosts and one or two workers",
    )
    throughput.add_argument("--rounds", type=int, default=3, help="rounds per size (default: 3)")
    throughput.add_argument(
        "--seconds", type=float, default=12, help="seconds of load, twice per round (default: 12)"
    )
    throughput.add_argument(
        "--rate", type=float, default=15, help="calls a second for each web host in open loop (default: 15)"
    )
    throughput.add_argument("--results", type=Path, default=_RESULTS / "hosts.json", help="the file to write")
    throughput.set_defaults(action=_cluster_throughput, guarded=True)
    containers = commands.add_parser(
        "containers",
        help="compose.yaml on a Docker engine: start, kill, upgrade, restore (where one is at hand)",
    )
    containers.add_argument(
        "--parts",
        type=lambda text: text.split(","),
        default=["idle", "commands", "kills", "upgrade", "restore"],
        help="comma-separated (default: idle,commands,kills,upgrade,restore)",
    )
    containers.set_defaults(action=_containers)
    soak = commands.add_parser("soak", help="load without faults: find leaks and failures")
    soak.add_argument("--minutes", type=float, default=30, help="how long (default: 30)")
    soak.add_argument("--results", type=Path, default=_RESULTS / "soak.json", help="the file to add to")
    soak.set_defaults(action=_soak, guarded=True)
    restore = commands.add_parser(
        "restore-drill", help="lose PostgreSQL under load, restore it, reconcile with the chain"
    )
    restore.add_argument("--before", type=float, default=30, help="seconds of load before the base backup")
    restore.add_argument("--after", type=float, default=60, help="seconds of load after it (default: 60)")
    restore.add_argument(
        "--back",
        type=float,
        help="restore to this many seconds before the loss (default: the last archived segment)",
    )
    restore.set_defaults(action=_restore_drill, guarded=True)
    upgrade = commands.add_parser(
        "upgrade-rehearsal", help="migrate and replace every process under load; count what fails"
    )
    upgrade.add_argument(
        "--seconds", type=float, default=10, help="of load before and after each step (default: 10)"
    )
    upgrade.add_argument("--from", dest="commit", metavar="COMMIT", help="upgrade from this commit")
    upgrade.add_argument(
        "--environment", type=Path, help="a virtual environment with the packages of that commit"
    )
    upgrade.set_defaults(action=_upgrade_rehearsal, guarded=True)
    world = commands.add_parser("world", help="the product on geth, EDR and anvil, where they are at hand")
    world.add_argument(
        "--clients",
        type=lambda text: text.split(","),
        default=["anvil", "edr", "geth"],
        help="names, comma-separated (default: anvil,edr,geth)",
    )
    world.add_argument(
        "--seconds", type=float, default=20, help="of load before and after a reorganisation (default: 20)"
    )
    world.set_defaults(action=_world, guarded=True)
    stripe_mock = commands.add_parser(
        "stripe-mock",
        help="send every request of the Stripe adapter to stripe-mock; compare it with the double",
    )
    stripe_mock.add_argument("--program", default="", help="path of stripe-mock (default: on the PATH)")
    stripe_mock.set_defaults(action=_stripe_mock, guarded=True)
    months = commands.add_parser(
        "months",
        help="let people, a clerk and banks act at random for months; compare every cent with a reference",
    )
    months.add_argument("--people", type=int, default=300, help="how many (default: 300)")
    months.add_argument("--months", type=int, default=24, help="how many (default: 24)")
    months.add_argument("--seed", type=int, help="seed of the run to repeat (default: random)")
    months.add_argument(
        "--minutes", type=int, default=24 * 60, help="begin no month after this time (default: a day)"
    )
    months.add_argument("--results", type=Path, default=_RESULTS / "months.json", help="the file to write")
    months.set_defaults(action=_months, guarded=True)
    mutation = commands.add_parser("mutation", help="mutation test of the code that moves money")
    mutation.add_argument(
        "--minutes",
        type=float,
        default=60,
        help="start no new mutant after this time; 0 only prints the table (default: 60)",
    )
    mutation.add_argument("--count", type=int, default=450, help="wanted number of results (default: 450)")
    mutation.add_argument("--seed", type=int, default=1, help="seed of their order (default: 1)")
    mutation.add_argument("--again", action="store_true", help="retry the mutants that survived")
    mutation.add_argument("--only", default="", help="prefix of the mutants' names")
    mutation.add_argument("--tests", nargs="+", default=[], help="files of tests (default: of all areas)")
    mutation.add_argument("--seconds", type=float, default=25, help="of tests for one mutant (default: 25)")
    mutation.add_argument(
        "--results", type=Path, default=_RESULTS / "mutation.json", help="the file to add to"
    )
    mutation.set_defaults(action=_mutation)
    machine = commands.add_parser(
        "ledger-machine", help="long random test of the ledger against a reference model"
    )
    machine.add_argument("--runs", type=int, default=2_000)
    machine.add_argument("--steps", type=int, default=50, help="steps per run")
    machine.add_argument("--seed", type=int, help="seed of the run to repeat (default: random)")
    machine.set_defaults(action=_ledger_machine)
    pictures = commands.add_parser("pictures", help="take the pictures of docs/ again, from the real pages")
    pictures.set_defaults(action=_pictures)
    pages = commands.add_parser(
        "pages", help="measure bytes, layout shift and largest paint of each page at 400 kbit/s"
    )
    pages.add_argument("--results", type=Path, default=_RESULTS / "pages.json", help="the file to write")
    pages.set_defaults(action=_pages)
    inventory = commands.add_parser("inventory", help="count files, lines, settings and words")
    inventory.add_argument("--against", metavar="COMMIT", default="", help="print its figures beside these")
    inventory.set_defaults(action=_inventory)
    # Its words are read by `lab.structure`, which runs without this module too.
    structure = commands.add_parser(
        "structure", help="measure the structure of the code", prefix_chars="+", add_help=False
    )
    structure.add_argument("arguments", nargs="*")
    structure.set_defaults(action=_structure)
    return parser


def _bench(options: argparse.Namespace) -> int:
    if options.admin:
        from lab.bench.admin import bench_admin

        return bench_admin(options.data / "bench-admin.json")
    if options.ledger:
        from lab.bench.ledger import bench_ledger

        return bench_ledger(options.data / "bench-ledger.json")
    if options.primitives:
        from lab.bench.primitives import bench_primitives

        return bench_primitives()
    unwind_on_signals()
    if options.parts:
        from lab.bench.parts import bench_parts

        return bench_parts(options.data / "bench-parts.json")
    from lab.bench.run import bench

    return bench(options)


def _callers(options: argparse.Namespace) -> int:
    unwind_on_signals()
    from lab.bench.hostile import Options, run

    return run(Options(options.callers, options.rounds, options.seconds, options.rate, options.results))


def _chaos(options: argparse.Namespace) -> int:
    from lab.chaos.run import Options, run

    return run(Options(options.faults, options.minutes, options.times, options.results))


def _mutated(options: argparse.Namespace) -> int:
    from lab.chaos.mutated import Options, run

    return run(Options(options.count, options.nodes, options.seed, options.results))


def _pictures(options: argparse.Namespace) -> int:
    from lab.pictures import renew

    return renew()


def _pages(options: argparse.Namespace) -> int:
    from lab.pages import run

    return run(options.results)


def _signers(options: argparse.Namespace) -> int:
    from devstack.signing import KeyPlace
    from lab.chaos.signers import Options, run

    return run(Options([KeyPlace(name) for name in options.keys], options.calls, options.results))


def _cluster(options: argparse.Namespace) -> int:
    from lab.cluster.run import run

    return run(options.data.resolve() / "cluster", once=options.once)


def _cluster_test(options: argparse.Namespace) -> int:
    from lab.cluster.trials import Options, run

    return run(
        Options(
            options.faults,
            options.minutes,
            options.times,
            options.results,
            options.data.resolve() / "cluster",
            synchronous=not options.asynchronous,
        )
    )


def _cluster_throughput(options: argparse.Namespace) -> int:
    from lab.cluster.throughput import Options, run

    directory = options.data.resolve() / "cluster"
    return run(Options(options.rounds, options.seconds, options.rate, options.results, directory))


def _containers(options: argparse.Namespace) -> int:
    unwind_on_signals()
    from lab.containers.run import Options, run

    return run(Options(options.data / "containers", options.parts))


def _soak(options: argparse.Namespace) -> int:
    from lab.chaos.soak import Options, run

    return run(Options(options.minutes, options.results))


def _restore_drill(options: argparse.Namespace) -> int:
    from lab.rehearsals.restore import Options, run

    return run(Options(options.before, options.after, options.back))


def _upgrade_rehearsal(options: argparse.Namespace) -> int:
    from lab.rehearsals.upgrade import Options, run

    return run(Options(options.seconds, options.commit, options.environment))


def _world(options: argparse.Namespace) -> int:
    from lab.world.run import Options, run

    return run(Options(options.clients, options.seconds))


def _stripe_mock(options: argparse.Namespace) -> int:
    from lab.stripe_mock.run import Options, run

    return run(Options(options.program))


def _months(options: argparse.Namespace) -> int:
    from lab.months.run import Options, run

    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    return run(Options(options.people, options.months, seed, options.minutes, options.results.resolve()))


def _mutation(options: argparse.Namespace) -> int:
    from lab.mutation.run import Options, run

    wanted = vars(options)
    return run(Options(**{field.name: wanted[field.name] for field in fields(Options)}))


def _ledger_machine(options: argparse.Namespace) -> int:
    unwind_on_signals()
    from lab.ledger_machine import run_machine

    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    return run_machine(runs=options.runs, steps=options.steps, seed=seed)


def _inventory(options: argparse.Namespace) -> int:
    from lab.inventory import run

    return run(options.against)


def _structure(options: argparse.Namespace) -> int:
    from lab.structure import main as measure

    return measure(options.arguments)


if __name__ == "__main__":
    sys.exit(main())
