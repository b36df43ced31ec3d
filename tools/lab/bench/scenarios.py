"""The scenarios: each makes one round on a stack and returns its figures."""

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from lab.bench.calls import Wallets
from lab.bench.hello import Hello
from lab.bench.history import History
from lab.bench.load import Load, send
from lab.bench.records import Records
from lab.bench.rounds import (
    WAIT_SECONDS,
    beside_round,
    creation_round,
    in_flight_round,
    read_round,
    relay_round,
    waiting_round,
)
from lab.bench.sponsor import open_campaign, open_sponsor
from lab.bench.stack import Stack

HELLO_SECONDS, _READ_SECONDS = 2.0, 4.0
_CALLS_PER_SECOND = 500
_IN_FLIGHT_CLIENTS, _IN_FLIGHT_CALLS = 8, 200
_BESIDE_CALLS = 240
_OPEN_LOOP_CLIENTS = 64
_BESIDE_CLIENTS = 8
# A key may request 60 profiles a minute.
_CAMPAIGN_KEYS, _CREATIONS_PER_SECOND, _MANY_PLACES = 20, 50, 10**9


@dataclass(frozen=True)
class Size:
    """The duration of a round, and the shape of its calls."""

    seconds: float = 12
    calls: int | None = None
    rate: float = 0
    targets: int = 4

    def number(self, rate: float = 0) -> int:
        """Return how many calls to sign for a round."""
        return self.calls or int((rate or _CALLS_PER_SECOND) * self.seconds) + 1


@dataclass
class Site:
    """A stack under measurement: its wallets, records, hello-world server, and rounds so far."""

    stack: Stack
    wallets: Wallets
    records: Records
    hello: Hello
    size: Size
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _new_wallets: dict[int, int] = field(default_factory=dict)
    _sponsor: str = ""

    def warm_up(self, calls: int) -> dict[str, Any]:
        """Warm up: every process imports and connects. The round is checked but not counted."""
        return relay_round(self.stack, self.records, Load(self.wallets.many_profiles(calls), 8, 60))

    def many_profiles(self, clients: int) -> dict[str, Any]:
        """Send calls of all profiles, one channel per call; then hello-world requests from as many clients."""
        lanes = self.wallets.many_profiles(self.size.number(self.size.rate))
        hello = self._hello_per_second(lanes[0][0], clients)
        load = Load(lanes, clients, self.size.seconds, self.size.rate)
        figures = relay_round(self.stack, self.records, load)
        share = figures["accepted_per_second"] / hello * 100
        return figures | {"hello_per_second": hello, "percent_of_hello": share}

    def half(self, _: int) -> dict[str, Any]:
        """Send at half of the rate settled earlier in this run, in open loop."""
        settled = [
            [figures["settled_per_second"] for figures in of if "settled_per_second" in figures]
            for name, of in self.rounds.items()
            if "half" not in name
        ]
        if not any(settled):
            raise RuntimeError(
                "`half` needs a rate: measure many-8 or another scenario of relay calls first."
            )
        best = max(median(figures) for figures in settled if figures)
        return self._paid(_OPEN_LOOP_CLIENTS, rate=best / 2)

    def own(self, clients: int) -> dict[str, Any]:
        """Send calls of all profiles, which their own accounts pay."""
        return self._paid(clients)

    def sponsored(self, clients: int) -> dict[str, Any]:
        """Send calls of all profiles, which one sponsor pays by a policy with every limit."""
        return self._paid(clients, is_sponsored=True)

    def own_half(self, clients: int) -> dict[str, Any]:
        """Send `own` at half of the rate at which it settled in this run, in open loop."""
        return self._paid(clients, rate=self._half_of_own(clients))

    def sponsored_half(self, clients: int) -> dict[str, Any]:
        """Send `sponsored` at the same rate as `own_half`."""
        return self._paid(clients, rate=self._half_of_own(clients), is_sponsored=True)

    def _half_of_own(self, clients: int) -> float:
        rounds = self.rounds.get(f"own-{clients}")
        if not rounds:
            raise RuntimeError(f"Measure own-{clients} first, whose rate this scenario halves.")
        return float(median(figures["settled_per_second"] for figures in rounds)) / 2

    def _paid(self, clients: int, *, rate: float = 0, is_sponsored: bool = False) -> dict[str, Any]:
        """Send calls in closed loop, or at a rate."""
        if is_sponsored and not self._sponsor:
            self._sponsor = open_sponsor(self.stack)
        headers = [f"relay-sponsor: {self._sponsor}"] if is_sponsored else []
        lanes = self.wallets.many_profiles(self.size.number(rate), *headers)
        load = Load(lanes, clients, self.size.seconds, rate)
        figures = relay_round(self.stack, self.records, load, is_sponsored=is_sponsored)
        return figures | ({"offered_per_second": rate} if rate else {})

    def creations(self, clients: int) -> dict[str, Any]:
        """Create profiles, which one sponsor pays."""
        keys = open_campaign(self.stack, keys=_CAMPAIGN_KEYS, places=_MANY_PLACES)
        requests = self.wallets.creations(self.size.number(_CREATIONS_PER_SECOND), keys)
        return creation_round(self.stack, self.records, Load([requests], clients, self.size.seconds))

    def beside_creations(self, rate: int) -> dict[str, Any]:
        """Send `own` from 8 clients, and beside it this many requests for new profiles a second, by one key."""
        return self._beside(rate, places=_MANY_PLACES)

    def beside_full_campaign(self, rate: int) -> dict[str, Any]:
        """Send `own` from 8 clients beside requests for new profiles of a sponsor that has paid for all it wants."""
        return self._beside(rate, places=1)

    def _beside(self, rate: int, *, places: int) -> dict[str, Any]:
        keys = open_campaign(self.stack, keys=1, places=places)
        requests = self.wallets.creations(self.size.number(rate), keys)
        campaign = Load([requests], _BESIDE_CLIENTS, self.size.seconds, rate)
        lanes = [
            Load(self.wallets.many_profiles(self.size.number()), _BESIDE_CLIENTS, self.size.seconds)
            for _ in range(3)
        ]
        return beside_round(self.stack, self.records, lanes, campaign)

    def channels(self, number: int) -> dict[str, Any]:
        """Send calls of one profile, one connection per channel, in order."""
        lanes = self.wallets.channels_of_one(self.size.number(), channels=number)
        return relay_round(self.stack, self.records, Load(lanes, number, self.size.seconds))

    def in_flight(self, number: int) -> dict[str, Any]:
        """Accept calls while about this many others wait to be mined."""
        measured = min(number, _IN_FLIGHT_CALLS)
        lanes = self.wallets.many_profiles(number + measured // 2)
        before = number - measured // 2
        return in_flight_round(self.stack, self.records, lanes[0], before=before, clients=_IN_FLIGHT_CLIENTS)

    def waiting(self, number: int) -> dict[str, Any]:
        """Accept calls from 8 clients with and without this many long-polling clients."""
        half = _BESIDE_CALLS // 2
        (calls,) = self.wallets.many_profiles(number + 2 * _BESIDE_CALLS)
        ends = [0, number, number + half, number + half + _BESIDE_CALLS, len(calls)]

        def waits(newest: int) -> Load:
            lanes = self.wallets.waits(self.records.calls_since(newest, number), WAIT_SECONDS)
            # At this rate all clients wait after a while, and their timeouts are spread evenly.
            return Load(lanes, number, 1.5 * WAIT_SECONDS, rate=number / WAIT_SECONDS, cycles=True)

        lanes = [calls[begin:end] for begin, end in pairwise(ends)]
        return waiting_round(self.stack, self.records, lanes, waits)

    def entries(self, number: int) -> dict[str, Any]:
        """Fill the ledger up to this many entries, then measure as `many_profiles` with 8 clients."""
        history = History(self.stack.database_url)
        missing = number - history.count_entries()
        profiles = [wallet.profile_address for wallet in self.wallets.callers()]
        if missing > 0:
            history.add_entries(profiles, each=-(-missing // len(profiles)))
        return self.many_profiles(8)

    def quota(self, clients: int) -> dict[str, Any]:
        """Request signed quotas."""
        return self._read(self.wallets.quotas(), clients)

    def status(self, clients: int) -> dict[str, Any]:
        """Request the status of settled transactions."""
        wallet = self.wallets.callers()[0]
        hashes = self.records.settled_hashes(wallet.profile_address, 50)
        return self._read(self.wallets.statuses(wallet, hashes), clients)

    def dashboard(self, rows: int) -> dict[str, Any]:
        """Request the dashboard of one profile with this many earnings and calls."""
        number = self._new_wallets.setdefault(rows, len(self._new_wallets))
        wallet = self.wallets.new_wallet(number)
        if f"dashboard-{rows}" not in self.rounds:
            History(self.stack.database_url).add_calls([wallet.profile_address], each=rows)
        return self._read(self.wallets.dashboard(wallet), 1)

    def check_in(self, clients: int) -> dict[str, Any]:
        """Check in once with each profile; only one round per day is possible."""
        return read_round(self.stack, Load(self.wallets.check_ins(), clients, 60))

    def _read(self, lanes: Sequence[Sequence[str]], clients: int) -> dict[str, Any]:
        return read_round(self.stack, Load(lanes, clients, _READ_SECONDS, cycles=True))

    def _hello_per_second(self, request: str, clients: int) -> float:
        """Send one of the relay calls to hello-world, so both servers parse the same request."""
        load = Load([[request]], clients, HELLO_SECONDS, cycles=True)
        return float(send(self.hello.url, load).figures()["accepted_per_second"])


# By the name without its number. The dashboard's rows are on no chain, so it is measured last.
_MEASURES: Mapping[str, Callable[[Site, int], dict[str, Any]]] = {
    "many": Site.many_profiles,
    "half": Site.half,
    "own": Site.own,
    "sponsored": Site.sponsored,
    "own-half": Site.own_half,
    "sponsored-half": Site.sponsored_half,
    "creations": Site.creations,
    "beside-creations": Site.beside_creations,
    "beside-full-campaign": Site.beside_full_campaign,
    "channels": Site.channels,
    "in-flight": Site.in_flight,
    "waiting": Site.waiting,
    "entries": Site.entries,
    "quota": Site.quota,
    "status": Site.status,
    "check-in": Site.check_in,
    "dashboard": Site.dashboard,
}
SCENARIOS = (
    *(
        "many-1",
        "many-8",
        "many-32",
        "many-64",
        "half",
        "channels-1",
        "channels-8",
        "in-flight-50",
        "in-flight-500",
        "waiting-500",
    ),
    *("quota", "status", "check-in", "dashboard-0", "dashboard-1000", "dashboard-100000"),
)
# Kinds whose rounds alternate, because they are compared with each other.
_COMPARED = (("own", "sponsored"), ("own-half", "sponsored-half"))
SHORT = ("many-1", "many-8", "many-32", "half", "in-flight-50", "quota", "status", "dashboard-1000")


@dataclass(frozen=True)
class Scenario:
    """One scenario, such as `many-8` or `quota`."""

    name: str

    @property
    def kind(self) -> str:
        """The name without its number."""
        return re.sub(r"-\d+$", "", self.name)

    @property
    def happens_once(self) -> bool:
        """Return whether only one round per day is possible."""
        return self.kind == "check-in"

    def measure(self, site: Site) -> dict[str, Any]:
        """Make one round; without a number with one client."""
        number = self.name.removeprefix(self.kind).removeprefix("-")
        return _MEASURES[self.kind](site, int(number or 1))


def scenarios_of(names: Sequence[str]) -> list[Scenario]:
    """
    Return the named scenarios in the order in which they can be measured.

    Raises:
        RuntimeError: no scenario has this name.
    """
    scenarios = [Scenario(name) for name in names]
    for scenario in scenarios:
        if scenario.kind not in _MEASURES:
            raise RuntimeError(f"Unknown scenario {scenario.name}; choose from {', '.join(SCENARIOS)}.")
    return sorted(scenarios, key=lambda scenario: scenario.kind == "dashboard")


def in_turns(scenarios: Sequence[Scenario]) -> list[list[Scenario]]:
    """Return the scenarios in groups whose rounds alternate; most are alone in theirs."""

    def group(place: int) -> int:
        kind = scenarios[place].kind
        return next((-number for number, kinds in enumerate(_COMPARED, 1) if kind in kinds), place)

    return [[scenarios[place] for place in places] for _, places in groupby(range(len(scenarios)), group)]


@contextmanager
def site_of(stack: Stack, size: Size) -> Iterator[Site]:
    """Open the records of a stack and start its hello-world."""
    records = Records(stack)
    with (
        tempfile.TemporaryDirectory(prefix="hello-") as folder,
        Hello(Path(folder), stack).running() as hello,
    ):
        try:
            yield Site(stack, Wallets(stack, size.targets), records, hello, size)
        finally:
            records.close()
