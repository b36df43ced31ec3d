"""The options of `python -m lab bench`."""

import argparse
from pathlib import Path

from devstack.files import DATA

_RESULTS = DATA / "lab" / "bench"
_SCENARIOS = """\
scenarios:
  many-N            calls of all profiles from N clients, each on a channel of its own; hello-world beside it
  half              open loop at half of the settled calls per second measured earlier in this run
  own-N, sponsored-N    calls of all profiles from N clients, paid by their accounts or by one sponsor, in turns
  own-half-N, sponsored-half-N    the same in open loop at half of the calls per second that own-N settled
  channels-N        calls of one profile on N channels, in their order
  in-flight-N       accepting while N other calls wait to be mined
  waiting-N         accepting from 8 clients, alone and then while N others wait for a status
  entries-N         as many-8, with at least N entries in the ledger
  quota-N, status-N, check-in-N    from N clients (default: 1)
  dashboard-N       of a profile with N earnings and N calls
  all               many-1, -8, -32, -64, half, channels-1, -8, in-flight-50, -500, waiting-500, quota,
                    status, check-in and dashboard-0, -1000, -100000
The default is many-1, -8, -32, half, in-flight-50, quota, status and dashboard-1000.
"""


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `lab.bench.run` reads."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _SCENARIOS
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--admin", action="store_true", help="the admin's pages with a million entries instead"
    )
    other.add_argument("--ledger", action="store_true", help="signed roots over a million entries instead")
    other.add_argument(
        "--primitives", action="store_true", help="steps of a relay call beside libraries instead"
    )
    other.add_argument(
        "--parts",
        action="store_true",
        help="parts of accepting a call beside their lower bounds instead",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--clients", type=_numbers, default=[], help="short for many-N, such as 1,8,32")
    what.add_argument(
        "--scenarios", type=_names, default=[], help="what to measure, such as many-8,half,quota"
    )
    parser.add_argument("--seconds", type=float, default=12, help="how long each round sends (default: 12)")
    parser.add_argument("--calls", type=int, help="how many calls a round sends at most")
    parser.add_argument("--rounds", type=int, default=1, help="how often each is measured (default: 1)")
    parser.add_argument(
        "--rate", type=float, default=0, help="open loop of many-N on N connections: calls per second"
    )
    parser.add_argument(
        "--targets",
        type=int,
        default=4,
        help="number of addresses that the calls pay; 0: a new one each time (default: 4)",
    )
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument(
        "--against", metavar="COMMIT", help="alternate with this commit, and print ratios to it"
    )
    beside.add_argument(
        "--keys",
        type=_keys,
        default=["local"],
        help="place of the keys: local, keystore, pkcs11 or kms; two, such as local,keystore, alternate",
    )
    parser.add_argument(
        "--environment", type=Path, help="a virtual environment with the packages of that commit"
    )
    parser.add_argument(
        "--results", type=Path, default=_RESULTS, help="folder of the figures (default: var/lab/bench)"
    )
    parser.add_argument(
        "--no-results", dest="results", action="store_const", const=None, help="only print them"
    )


def _names(text: str) -> list[str]:
    from lab.bench.scenarios import SCENARIOS

    return list(SCENARIOS) if text == "all" else text.split(",")


def _keys(text: str) -> list[str]:
    places = text.split(",")
    if len(places) > 2 or not set(places) <= {"local", "keystore", "pkcs11", "kms"}:
        raise argparse.ArgumentTypeError(f"{text} is not one or two of local, keystore, pkcs11 and kms")
    return places


def _numbers(text: str) -> list[int]:
    numbers = [int(part) for part in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a list of numbers from 1")
    return numbers
