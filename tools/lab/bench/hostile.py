"""
`python -m lab callers`: how much one signed-in user below the default rates slows everybody else.

Eleven callers, each as expensive as we can make them, send beside the same load that is also sent alone, in alternating
rounds. The node's CPU time is reported apart, because it is the part that a batch of calls has in common.
"""

import itertools
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from devstack.console import echo, step
from devstack.files import write_json
from devstack.wallet import Wallet
from devstack.world.abi import calldata
from devstack.world.deployer import ETHER, Call, Deployer
from lab.bench.calls import Wallets, post, signed_call
from lab.bench.load import Load, percentile, send
from lab.bench.sponsor import STALLED, stalled_verifier
from lab.bench.stack import Stack, running_stack, this_checkout

MOST_LOST = 0.1
_CLIENTS, _SETTLE_SECONDS = 8, 60
_EXECUTE = "execute(uint256,address,uint256,bytes)"
_PATH = "/api/relay/execute"
# The runtime code of each contract. MEGABYTE and HALF are returned or reverted with, filled with zeros.
_MEGABYTE, _HALF = "62124f80", "6207a120"
CONTRACTS = {
    "reverts a megabyte": f"{_MEGABYTE} 6000 fd",
    "reverts half a megabyte": f"{_HALF} 6000 fd",
    "returns half a megabyte": f"{_HALF} 6000 f3",
    "burns all gas": "5b 6000 56",
    # Until 300,000 are left, so that the call succeeds.
    "burns most gas": "5b 5a 620493e0 10 6000 57 00",
    "calls itself": "6000 6000 6000 6000 6000 30 5a f1 00",
}
_SETTLED = """
SELECT count(*) FROM relay_relaytransaction WHERE id > %s AND settled_at IS NOT NULL AND profile_address <> %s
"""
_NEWEST = "SELECT coalesce(max(id), 0) FROM relay_relaytransaction"


def creation_code(runtime: str) -> bytes:
    """Return the code that deploys a contract with this runtime code."""
    code = bytes.fromhex(runtime)
    return bytes.fromhex(f"60{len(code):02x}80600b6000396000f3") + code


@dataclass
class Attacker:
    """One signed-in wallet that makes no other calls; `contracts` are the addresses of `CONTRACTS`."""

    wallet: Wallet
    base_url: str
    chain_id: int
    contracts: Mapping[str, str]
    channels: Iterator[int]

    def payload(self, contract: str) -> bytes:
        """Return a call of a contract."""
        return calldata(_EXECUTE, 0, self.contracts[contract], 0, b"")

    def request(self, payload: bytes, *headers: str, signer: Wallet | None = None, sequence: int = 0) -> str:
        """Return a request with a call in a channel of its own, and these headers."""
        nonce = (next(self.channels) << 128) + sequence
        body = signed_call(signer or self.wallet, payload, chain_id=self.chain_id, nonce=nonce)
        return post(self.base_url, _PATH, self.wallet.token, body, *headers)

    def behind(self, contract: str) -> str:
        """Return a request that names this contract as key manager."""
        address = self.contracts[contract]
        return self.request(
            self.payload("calls itself"), signer=replace(self.wallet, key_manager_address=address)
        )

    def unknown_signer(self) -> str:
        """Return a request that an unknown key has signed, for which the node is asked again."""
        stranger = replace(self.wallet, controller_key="0x" + secrets.token_hex(32))
        return self.request(self.payload("calls itself"), signer=stranger)

    def large(self) -> str:
        """Return a request that stores about as many bytes as the maximum of gas pays for."""
        return self.request(calldata("setData(bytes32,bytes)", secrets.token_bytes(32), b"\xff" * 1_500))


CALLERS: dict[str, Callable[[Attacker], str]] = {
    "key manager that reverts 1.2 MB": lambda one: one.behind("reverts a megabyte"),
    "key manager that burns gas": lambda one: one.behind("burns all gas"),
    "target that reverts 0.5 MB": lambda one: one.request(one.payload("reverts half a megabyte")),
    "target that returns 0.5 MB": lambda one: one.request(one.payload("returns half a megabyte")),
    "target that burns all gas": lambda one: one.request(one.payload("burns all gas")),
    "target that burns most gas": lambda one: one.request(one.payload("burns most gas")),
    "target that calls itself": lambda one: one.request(one.payload("calls itself")),
    "large calldata": lambda one: one.large(),
    "nonces with gaps": lambda one: one.request(one.payload("calls itself"), sequence=7),
    "unknown signers": lambda one: one.unknown_signer(),
    "sponsor whose verifier stalls": lambda one: one.request(
        one.payload("calls itself"), f"relay-sponsor: {STALLED}"
    ),
}


@dataclass(frozen=True)
class Options:
    """The callers, by prefixes of their names; rounds, each alone and beside; and calls a second of the attacker."""

    callers: Sequence[str] = ("",)
    rounds: int = 5
    seconds: float = 10
    rate: float = 9
    results: Path | None = None


@dataclass(frozen=True)
class Round:
    """What the others got in one round, and what the attacker got. CPU in milliseconds a second."""

    settled_per_second: float
    p50_ms: float
    p99_ms: float
    node_cpu: float
    service_cpu: float
    refused: Mapping[str, int]
    answers: Mapping[str, int]


def run(options: Options) -> int:
    """Measure and print; return 1 if a caller costs the others more than a tenth of their settled calls."""
    names = [name for name in CALLERS if name.startswith(tuple(options.callers))]
    if not names:
        raise RuntimeError(f"no caller's name begins so; there are: {', '.join(CALLERS)}")
    with (
        running_stack(this_checkout()) as stack,
        psycopg.connect(stack.database_url, autocommit=True) as rows,
        stalled_verifier(stack),
    ):
        stack.meter.ignored.add(rows.info.backend_pid)
        wallets = Wallets(stack, targets=4)
        contracts = _deployed(stack)
        _round(stack, rows, wallets, None, replace(options, seconds=5))
        results = {}
        for name in names:
            alone, beside = [], []
            for _ in range(options.rounds):
                alone.append(_round(stack, rows, wallets, None, options))
                # After it, so that the token of the attacker lasts.
                attacker = Attacker(
                    wallets.new_wallet(0),
                    stack.base_url,
                    stack.described["chain_id"],
                    contracts,
                    itertools.count(secrets.randbits(64)),
                )
                requests = [CALLERS[name](attacker) for _ in range(int(options.rate * options.seconds) + 1)]
                beside.append(_round(stack, rows, wallets, requests, options))
            results[name] = figures_of(alone, beside)
            echo(_line(name, results[name]))
    if options.results is not None:
        write_json(options.results, results)
    return int(any(figures["lost"] > MOST_LOST for figures in results.values()))


def figures_of(alone: Sequence[Round], beside: Sequence[Round]) -> dict[str, Any]:
    """Return the medians of both kinds of rounds, and the share of settled calls that the others lost."""
    medians = {
        name: [median(getattr(one, name) for one in rounds) for rounds in (alone, beside)]
        for name in ("settled_per_second", "p50_ms", "p99_ms", "node_cpu", "service_cpu")
    }
    before, after = medians["settled_per_second"]
    results = sum((Counter(one.answers) for one in beside), Counter[str]())
    refused = sum((Counter(one.refused) for one in [*alone, *beside]), Counter[str]())
    return {
        **medians,
        "lost": 1 - after / before if before else 0.0,
        "attacker": dict(results),
        "refused": dict(refused),
    }


def _line(name: str, figures: dict[str, Any]) -> str:
    pairs = {
        key: "{:.0f} → {:.0f}".format(*figures[key])
        for key in ("settled_per_second", "p50_ms", "p99_ms", "node_cpu", "service_cpu")
    }
    return (
        f"{name:32} lost {figures['lost']:+.0%}  settled/s {pairs['settled_per_second']}  p50 ms {pairs['p50_ms']}  "
        f"p99 ms {pairs['p99_ms']}  "
        f"node ms/s {pairs['node_cpu']}  service ms/s {pairs['service_cpu']}  {figures['attacker']}"
        + (f"  others refused: {figures['refused']}" if figures["refused"] else "")
    )


def _deployed(stack: Stack) -> dict[str, str]:
    with step("deploying the contracts"):
        deployer = Deployer(stack.rpc, "0x" + secrets.token_hex(32))
        deployer.fund(1_000 * ETHER, deployer.address)
        receipts = deployer.send([Call(data=creation_code(code), gas=500_000) for code in CONTRACTS.values()])
    return {name: str(receipt["contractAddress"]) for name, receipt in zip(CONTRACTS, receipts, strict=True)}


def _round(
    stack: Stack,
    rows: "psycopg.Connection[Any]",
    wallets: Wallets,
    attack: Sequence[str] | None,
    options: Options,
) -> Round:
    """Send the load of eight clients, with or without an attack beside it, and wait until it is settled."""
    lanes = wallets.many_profiles(int(300 * options.seconds))
    profile = wallets.new_wallet(0).profile_address
    newest = _number(rows, _NEWEST)
    before, began = stack.meter.read(), time.monotonic()
    with ThreadPoolExecutor(1) as thread:
        attacking = attack and thread.submit(
            send, stack.base_url, Load([attack], _CLIENTS, options.seconds, rate=options.rate)
        )
        sent = send(stack.base_url, Load(lanes, _CLIENTS, options.seconds))
        used = stack.meter.read().since(before)
        deadline = time.monotonic() + _SETTLE_SECONDS
        while _number(rows, _SETTLED, newest, profile) < len(sent.accepted) and time.monotonic() < deadline:
            time.sleep(0.2)
        settled, seconds = _number(rows, _SETTLED, newest, profile), time.monotonic() - began
        # An attacker that is told to wait sends on after the others have ended.
        attacked = attacking.result() if attacking else None
    each, taken = used.per_call(used.at), sorted(one.milliseconds for one in sent.accepted)
    results = Counter(attacked.refusals) + Counter(accepted=len(attacked.accepted)) if attacked else Counter()
    return Round(
        settled / seconds,
        percentile(taken, 50),
        percentile(taken, 99),
        each["node"],
        each["service"],
        sent.refusals,
        results,
    )


def _number(rows: "psycopg.Connection[Any]", statement: str, *values: Any) -> int:
    row = rows.execute(statement, values or None).fetchone()
    return int(row[0]) if row else 0
