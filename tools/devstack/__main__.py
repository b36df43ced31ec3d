"""The dev stack's commands, such as `python -m devstack run`."""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from devstack.console import echo_error
from devstack.files import DATA, PROJECT
from devstack.process_lifetime import run_guarded, unwind_on_signals

# Management commands that need the owner of the tables.
_OWNERS_COMMANDS = {"migrate"}
_NO_STACK = "No stack has run yet; start one with `make run`."
# A copy of `devstack.signing.KeyPlace`, whose import takes a second.
_PLACES = ("keystore", "pkcs11", "kms")


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
    parser = argparse.ArgumentParser(prog="python -m devstack", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the stack's data")
    # Whether all processes of the command must end with it.
    parser.set_defaults(guarded=False)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="start everything, run the wallet journey, serve")
    run.add_argument("--once", action="store_true", help="stop after the journey, with its exit status")
    run.add_argument(
        "--load", action="store_true", help="no journey; profiles and processes for a load generator"
    )
    run.add_argument("--port", help="port of the web server (default: a free one)")
    run.add_argument("--block-time", type=float, help="seconds between blocks (default: 2; with --load 1)")
    run.add_argument(
        "--signer",
        nargs="?",
        choices=_PLACES,
        const=_PLACES[0],
        help=f"run a separate signer, as in production: {', '.join(_PLACES)} (default: {_PLACES[0]})",
    )
    run.add_argument("--home-only", action="store_true", help="no second chain")
    run.set_defaults(action=_run, guarded=True)
    prepare = commands.add_parser(
        "prepare", help="prepare the first start: chain node, database template, browser extension"
    )
    prepare.set_defaults(action=_prepare)
    npm = commands.add_parser("npm", help="run npm for the TypeScript client")
    npm.add_argument("arguments", nargs=argparse.REMAINDER)
    npm.set_defaults(action=_npm)
    biome = commands.add_parser("biome", help="run Biome, which formats and checks JavaScript and TypeScript")
    biome.add_argument("arguments", nargs=argparse.REMAINDER)
    biome.set_defaults(action=_biome)
    chart = commands.add_parser("chart", help="render the Helm chart into var/ and validate the result")
    chart.set_defaults(action=_chart)
    translations = commands.add_parser("translations", help="update and compile the pages' catalogues")
    translations.add_argument("languages", nargs="*", help="languages to begin, such as fr")
    translations.set_defaults(action=_translations)
    code = commands.add_parser("code", help="a login of the running stack, with its present code")
    code.add_argument(
        "role", nargs="?", default="staff", help="such as support (default: staff, who may do all)"
    )
    code.set_defaults(action=_code)
    manage = commands.add_parser("manage", help="a management command against the running stack")
    manage.add_argument("arguments", nargs=argparse.REMAINDER)
    manage.set_defaults(action=_manage)
    return parser


def _run(options: argparse.Namespace) -> int:
    from devstack.run import Options, run
    from devstack.signing import KeyPlace

    directory, keys = options.data.resolve(), KeyPlace(options.signer or "local")
    block_time = options.block_time or (1 if options.load else 2)
    return run(
        Options(directory, options.once, options.load, options.port, block_time, keys, options.home_only)
    )


def _prepare(_: argparse.Namespace) -> int:
    from devstack.extension import extension_script
    from devstack.services.template import make_template
    from devstack.toolchain import install_toolchain

    # In parallel, because some wait for the network and others for the CPU.
    with ThreadPoolExecutor() as pool:
        for work in [pool.submit(one) for one in (install_toolchain, make_template, extension_script)]:
            work.result()
    return 0


def _npm(options: argparse.Namespace) -> int:
    from devstack.toolchain import run_npm

    return run_npm(*options.arguments)


def _biome(options: argparse.Namespace) -> int:
    from devstack.toolchain import run_biome

    return run_biome(*options.arguments)


def _chart(_: argparse.Namespace) -> int:
    from devstack.chart import render_chart

    render_chart()
    return 0


def _translations(options: argparse.Namespace) -> int:
    from devstack.translations import update

    update(*options.languages)
    return 0


def _code(options: argparse.Namespace) -> int:
    from devstack.files import read_json
    from devstack.logins import login_lines

    description = read_json(options.data / "stack.json")
    if not description:
        raise RuntimeError(_NO_STACK)
    print("\n".join(login_lines(description, options.role)))
    return 0


def _manage(options: argparse.Namespace) -> int:
    from devstack.django_process import process_environment
    from devstack.files import read_json

    settings = read_json(options.data / "environment.json")
    if not settings:
        raise RuntimeError(_NO_STACK)
    if set(options.arguments[:1]) & _OWNERS_COMMANDS:
        settings |= read_json(options.data / "owner.json")
    command = [sys.executable, str(PROJECT / "manage.py"), *options.arguments]
    os.execve(sys.executable, command, process_environment(settings))  # noqa: S606


if __name__ == "__main__":
    sys.exit(main())
