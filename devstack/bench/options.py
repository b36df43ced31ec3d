"""The options of `python -m devstack bench`."""

import argparse
from pathlib import Path

from devstack.files import PROJECT

RESULTS = PROJECT / "docs" / "bench"


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add them; they are read by `devstack.bench.run`."""
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--admin", action="store_true", help="the admin's pages with a million entries instead"
    )
    other.add_argument(
        "--primitives", action="store_true", help="the steps of a relay call beside libraries instead"
    )
    parser.add_argument(
        "--clients", type=_numbers, default=[8], help="connections at once, such as 1,8,32 (default: 8)"
    )
    parser.add_argument("--seconds", type=float, default=12, help="how long each round sends (default: 12)")
    parser.add_argument("--calls", type=int, help="how many calls a round sends at most")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured (default: 1)")
    parser.add_argument(
        "--rate", type=float, default=0, help="open loop: calls a second that are due, answered or not"
    )
    parser.add_argument(
        "--targets",
        type=int,
        default=4,
        help="how many addresses the calls pay; 0 is a new one each time (default: 4)",
    )
    parser.add_argument(
        "--against", metavar="COMMIT", help="measure this commit in turn, and print ratios to it"
    )
    parser.add_argument(
        "--environment", type=Path, help="a virtual environment with the packages of that commit"
    )
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="folder for the figures (default: docs/bench)"
    )
    parser.add_argument(
        "--no-results", dest="results", action="store_const", const=None, help="only print the figures"
    )


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a list of numbers from 1")
    return numbers
