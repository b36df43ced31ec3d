"""The dev stack's commands, such as `python -m devstack run`."""

import argparse
import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

from devstack.bench.options import add_bench_options
from devstack.console import complain
from devstack.files import DATA, PROJECT
from devstack.process_lifetime import run_guarded, unwind_on_signals

# Management commands that alter tables, or rows that nobody else may alter.
_OWNERS_COMMANDS = {"migrate"}
# Where a signer's keys may lie; `devstack.signing.KeyPlace` has them too, and takes a second to import.
_PLACES = ("keystore", "pkcs11", "kms")


def main() -> int:
    """Run the command that the arguments name; return its exit status."""
    options = _parser().parse_args()
    try:
        if not options.guarded:
            return int(options.action(options))
        unwind_on_signals()  # before the imports of an action, which take a second
        return run_guarded(lambda: int(options.action(options)))
    except RuntimeError as error:
        complain(f"✗ {error}")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m devstack", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the stack's data")
    # Whether no process of the command may outlive it.
    parser.set_defaults(guarded=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="start everything, make the wallet journey, serve")
    run.add_argument("--once", action="store_true", help="end after the journey, with its result")
    run.add_argument(
        "--load", action="store_true", help="no journey; profiles and processes for a load generator"
    )
    run.add_argument("--port", type=_port, help="port of the web server (default: a free one)")
    run.add_argument("--block-time", type=float, help="seconds between blocks (default: 2; with --load 1)")
    run.add_argument(
        "--signer",
        nargs="?",
        choices=_PLACES,
        const=_PLACES[0],
        help=f"keys with a signer of its own, as in production: {', '.join(_PLACES)} (default: {_PLACES[0]})",
    )
    run.set_defaults(action=_run, guarded=True)
    prepare = commands.add_parser(
        "prepare", help="make what the first start needs: chain node, database template"
    )
    prepare.set_defaults(action=_prepare)
    npm = commands.add_parser("npm", help="npm for the TypeScript client, its packages installed")
    npm.add_argument("arguments", nargs=argparse.REMAINDER)
    npm.set_defaults(action=_npm)
    bench = commands.add_parser(
        "bench", help="measure the relay under load, alone or beside another commit", allow_abbrev=False
    )
    add_bench_options(bench)
    bench.set_defaults(action=_bench)
    calls = commands.add_parser("calls", help="print signed calls of the running stack, for a load generator")
    calls.add_argument("--count", type=int, default=4_000, help="how many (default: 4,000)")
    calls.set_defaults(action=_calls)
    chaos = commands.add_parser("chaos", help="cause faults under load, and compare what was promised")
    chaos.add_argument(
        "--minutes", type=float, default=60, help="begin no further fault after them (default: 60)"
    )
    chaos.add_argument(
        "--faults", type=lambda text: text.split(","), default=[""], help="how their names begin, with commas"
    )
    chaos.add_argument("--times", type=int, default=25, help="how often each is tried in all (default: 25)")
    chaos.add_argument(
        "--results", type=Path, default=PROJECT / "docs" / "chaos" / "results.json", help="the file to add to"
    )
    chaos.set_defaults(action=_chaos, guarded=True)
    signers = commands.add_parser(
        "signers", help="kill and stall what signs, wherever the keys lie, and compare what was promised"
    )
    signers.add_argument("--calls", type=int, default=2_000, help="with keys in each place (default: 2,000)")
    signers.add_argument(
        "--keys",
        type=lambda text: text.split(","),
        default=["local", *_PLACES],
        help=f"where they lie, with commas (default: local,{','.join(_PLACES)})",
    )
    signers.add_argument(
        "--results", type=Path, default=PROJECT / "docs" / "chaos" / "signers.json", help="the file to write"
    )
    signers.set_defaults(action=_signers, guarded=True)
    cluster = commands.add_parser(
        "cluster", help="the service on many hosts, all of them on this machine (root)"
    )
    cluster.add_argument("--once", action="store_true", help="end after a first relay call")
    cluster.set_defaults(action=_cluster, guarded=True)
    trials = commands.add_parser(
        "cluster-test", help="kill, stop and cut off what runs in a cluster, and compare what was promised"
    )
    trials.add_argument(
        "--minutes", type=float, default=60, help="begin no further fault after them (default: 60)"
    )
    trials.add_argument(
        "--faults", type=lambda text: text.split(","), default=[""], help="how their names begin, with commas"
    )
    trials.add_argument("--times", type=int, default=10, help="how often each is tried in all (default: 10)")
    trials.add_argument("--asynchronous", action="store_true", help="with standbys that no commit waits for")
    trials.add_argument(
        "--results", type=Path, default=PROJECT / "docs" / "chaos" / "cluster.json", help="the file to add to"
    )
    trials.set_defaults(action=_cluster_test, guarded=True)
    throughput = commands.add_parser(
        "cluster-throughput",
        help="measure relaying in a cluster of one to three web hosts and one or two workers",
    )
    throughput.add_argument("--rounds", type=int, default=3, help="of every size (default: 3)")
    throughput.add_argument(
        "--seconds", type=float, default=12, help="of load, twice in a round (default: 12)"
    )
    throughput.add_argument(
        "--rate", type=float, default=15, help="calls a second for each web host in open loop (default: 15)"
    )
    throughput.add_argument(
        "--results", type=Path, default=PROJECT / "docs" / "chaos" / "hosts.json", help="the file to write"
    )
    throughput.set_defaults(action=_cluster_throughput, guarded=True)
    soak = commands.add_parser("soak", help="load without any fault: what grows, what fails, what is wrong")
    soak.add_argument("--minutes", type=float, default=30, help="how long (default: 30)")
    soak.add_argument(
        "--results", type=Path, default=PROJECT / "docs" / "chaos" / "soak.json", help="the file to add to"
    )
    soak.set_defaults(action=_soak, guarded=True)
    restore = commands.add_parser(
        "restore-drill", help="lose PostgreSQL under load, restore it, and compare the books with the chain"
    )
    restore.add_argument("--before", type=float, default=30, help="seconds of load before the base backup")
    restore.add_argument("--after", type=float, default=60, help="seconds of load after it (default: 60)")
    restore.add_argument(
        "--back",
        type=float,
        help="restore to so many seconds before the loss (default: to the last archived segment)",
    )
    restore.set_defaults(action=_restore_drill, guarded=True)
    upgrade = commands.add_parser(
        "upgrade-rehearsal", help="add columns and replace every process under load; count what fails"
    )
    upgrade.add_argument(
        "--seconds", type=float, default=10, help="of load before and after each step (default: 10)"
    )
    upgrade.set_defaults(action=_upgrade_rehearsal, guarded=True)
    partitions = commands.add_parser(
        "partition-rehearsal", help="divide a table that grows for ever by month while it is used; measure"
    )
    partitions.add_argument(
        "--table", choices=("entries", "attempts"), default="entries", help="which (default: entries)"
    )
    partitions.add_argument("--rows", type=int, default=100_000, help="how many (default: 100000)")
    partitions.set_defaults(action=_partition_rehearsal, guarded=True)
    chart = commands.add_parser("chart", help="render the Helm chart, validate it, and keep what comes out")
    chart.set_defaults(action=_chart)
    mutation = commands.add_parser(
        "mutation", help="change the code that moves money; each change must fail a test"
    )
    mutation.add_argument(
        "--minutes",
        type=float,
        default=60,
        help="begin no further mutant after them; 0 only prints the table (default: 60)",
    )
    mutation.add_argument(
        "--count", type=int, default=450, help="how many results there shall be (default: 450)"
    )
    mutation.add_argument(
        "--seed", type=int, default=1, help="of the order in which they are tried (default: 1)"
    )
    mutation.add_argument("--again", action="store_true", help="try those that survived once more")
    mutation.add_argument("--only", default="", help="how the names of mutants begin")
    mutation.add_argument("--tests", nargs="+", default=[], help="files of tests (default: of all areas)")
    mutation.add_argument("--seconds", type=float, default=25, help="of tests for one mutant (default: 25)")
    mutation.add_argument(
        "--results", type=Path, default=PROJECT / "docs" / "mutation.json", help="the file to add to"
    )
    mutation.set_defaults(action=_mutation)
    machine = commands.add_parser("ledger-machine", help="random moves against a reference model, at length")
    machine.add_argument("--runs", type=int, default=2_000)
    machine.add_argument("--steps", type=int, default=50, help="moves of each run")
    machine.add_argument("--seed", type=int, help="of the run to repeat (default: another each time)")
    machine.set_defaults(action=_ledger_machine)
    manage = commands.add_parser("manage", help="a management command against the running stack")
    manage.add_argument("arguments", nargs=argparse.REMAINDER)
    manage.set_defaults(action=_manage)
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**16:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    from devstack.run import Options, run
    from devstack.signing import KeyPlace

    directory, keys = options.data.resolve(), KeyPlace(options.signer or "local")
    block_time = options.block_time or (1 if options.load else 2)
    return run(Options(directory, options.once, options.load, options.port, block_time, keys))


def _prepare(_: argparse.Namespace) -> int:
    from devstack.services.template import make_template
    from devstack.toolchain import install_toolchain

    with ThreadPoolExecutor() as pool:  # one waits for the network, the other for the processor
        for work in [pool.submit(install_toolchain), pool.submit(make_template)]:
            work.result()
    return 0


def _npm(options: argparse.Namespace) -> int:
    from devstack.toolchain import run_npm

    return run_npm(*options.arguments)


def _bench(options: argparse.Namespace) -> int:
    if options.admin:
        from devstack.bench.admin import bench_admin

        return bench_admin(options.data / "bench-admin.json")
    if options.ledger:
        from devstack.bench.ledger import bench_ledger

        return bench_ledger(options.data / "bench-ledger.json")
    if options.primitives:
        from devstack.bench.primitives import bench_primitives

        return bench_primitives()
    unwind_on_signals()
    if options.parts:
        from devstack.bench.parts import bench_parts

        return bench_parts(options.data / "bench-parts.json")
    from devstack.bench.run import bench

    return bench(options)


def _calls(options: argparse.Namespace) -> int:
    from devstack.bench.calls import signed_calls

    for line in signed_calls(options.data / "stack.json", options.count):
        print(line)
    return 0


def _chaos(options: argparse.Namespace) -> int:
    from devstack.chaos.run import Options, run

    return run(Options(options.faults, options.minutes, options.times, options.results))


def _signers(options: argparse.Namespace) -> int:
    from devstack.chaos.signers import Options, run
    from devstack.signing import KeyPlace

    return run(Options([KeyPlace(name) for name in options.keys], options.calls, options.results))


def _cluster(options: argparse.Namespace) -> int:
    from devstack.cluster.run import run

    return run(options.data.resolve() / "cluster", once=options.once)


def _cluster_test(options: argparse.Namespace) -> int:
    from devstack.cluster.trials import Options, run

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
    from devstack.cluster.throughput import Options, run

    directory = options.data.resolve() / "cluster"
    return run(Options(options.rounds, options.seconds, options.rate, options.results, directory))


def _soak(options: argparse.Namespace) -> int:
    from devstack.chaos.soak import Options, run

    return run(Options(options.minutes, options.results))


def _restore_drill(options: argparse.Namespace) -> int:
    from devstack.rehearsals.restore import Options, run

    return run(Options(options.before, options.after, options.back))


def _upgrade_rehearsal(options: argparse.Namespace) -> int:
    from devstack.rehearsals.upgrade import Options, run

    return run(Options(options.seconds))


def _partition_rehearsal(options: argparse.Namespace) -> int:
    from devstack.rehearsals.partitions import Options, run

    return run(Options(options.table, options.rows))


def _chart(_: argparse.Namespace) -> int:
    from devstack.chart import render_chart

    return render_chart()


def _mutation(options: argparse.Namespace) -> int:
    from devstack.mutation.run import Options, run

    wanted = vars(options)
    return run(Options(**{field.name: wanted[field.name] for field in fields(Options)}))


def _ledger_machine(options: argparse.Namespace) -> int:
    unwind_on_signals()
    from devstack.ledger_machine import run_machine

    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    return run_machine(runs=options.runs, steps=options.steps, seed=seed)


def _manage(options: argparse.Namespace) -> int:
    from devstack.environment import process_environment
    from devstack.files import read_json

    settings = read_json(options.data / "environment.json")
    if not settings:
        raise RuntimeError("No stack has run yet; start one with `make run`.")
    if set(options.arguments[:1]) & _OWNERS_COMMANDS:
        settings |= read_json(options.data / "owner.json")
    command = [sys.executable, str(PROJECT / "manage.py"), *options.arguments]
    os.execve(sys.executable, command, process_environment(settings))  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
