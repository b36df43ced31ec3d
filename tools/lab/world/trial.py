"""The product on one client: the wallet's journey, calls under load across a reorganisation, and the verifier."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from devstack.console import echo, step
from devstack.files import write_json
from devstack.journey.run import run_journey
from devstack.ports import free_port
from devstack.processes import Web
from devstack.rpc import Rpc
from devstack.services.anvil import Node
from devstack.services.stack import Services, start_services
from devstack.stack_file import write_stack_file
from lab.chaos.traffic import Traffic
from lab.chaos.verifier import Result
from lab.rehearsals.stack import BLOCK_SECONDS, Rehearsal
from lab.world.nodes import Edr, Geth
from lab.world.responses import Response, ask_everything

# No block is final yet at this depth, and calls are already settled in the blocks that go.
_DEPTH = 5
_KILLS, _AWAY_SECONDS, _BETWEEN_SECONDS = 3, 3, 8
_SHOWN = 5
_RECONCILIATIONS = ("reconcile_relay", "reconcile_credits", "reconcile_payments")


class Trial:
    """The outcome on one client: what it calls itself, its responses, and what was wrong."""

    def __init__(self) -> None:
        self.version = ""
        self.answers: list[Response] = []
        self.calls = self.reversed = self.kills = 0
        self.wrong: list[str] = []


def try_client(make_node: type[Node], *, seconds: float) -> Trial:
    """Run the product on a new chain of the client; `seconds` of load before and after the reorganisation."""
    trial, port = Trial(), free_port()
    with (
        tempfile.TemporaryDirectory(prefix="world-") as folder,
        # Durable, so that a killed node loses seconds of blocks and not those that are final.
        start_services(Path(folder), block_time=BLOCK_SECONDS, make_node=make_node) as services,
    ):
        trial.version = str(services.rpc.call("web3_clientVersion"))
        trial.answers = ask_everything(services)
        rehearsal = Rehearsal.prepare(services, port=port)
        logs = rehearsal.prepared.directory / "log"
        web = Web(logs, rehearsal.prepared.environment, port=port)
        with rehearsal.running([web, *rehearsal.workers()]):
            if _journey(rehearsal):
                trial.wrong.append("the wallet's journey failed")
            traffic = rehearsal.traffic()
            result = _load(rehearsal, traffic, make_node, trial, seconds)
            trial.wrong += [*result.wrong, *_reconciled(rehearsal)]
            if not make_node.keeps_its_chain:
                _lose_the_chain(rehearsal, traffic, trial)
    return trial


def _reconciled(rehearsal: Rehearsal) -> list[str]:
    outcomes = {command: rehearsal.manage(command) for command in _RECONCILIATIONS}
    return [
        f"{command}: {printed.strip()[-300:]}" for command, (status, printed) in outcomes.items() if status
    ]


def _journey(rehearsal: Rehearsal) -> int:
    """Run the journey of `make run` on this stack; return its exit status."""
    services, prepared = rehearsal.services, rehearsal.prepared
    write_stack_file(
        prepared.directory / "stack.json",
        services,
        base_url=prepared.settings["PUBLIC_URL"],
        staff=prepared.secrets.staff,
        staff_by_role=prepared.staff_by_role,
        profiles=prepared.profiles,
        networks=prepared.networks,
        sponsor=prepared.sponsor,
        second_chain={},
    )
    write_json(prepared.directory / "environment.json", prepared.settings)
    write_json(prepared.directory / "owner.json", prepared.owner_settings)
    return run_journey(prepared.directory / "stack.json")


def _load(rehearsal: Rehearsal, traffic: Traffic, client: type[Node], trial: Trial, seconds: float) -> Result:
    began = time.time()
    with (
        step(f"calls for {2 * seconds:g} s, with a reorganisation of {_DEPTH} blocks between, then kills"),
        traffic.running(),
    ):
        time.sleep(seconds)
        reorganise = reorganisation_of(client, rehearsal.services)
        time.sleep(_DEPTH * BLOCK_SECONDS)
        reorganise()
        time.sleep(seconds)
        for _ in range(_KILLS if client.keeps_its_chain else 0):
            _kill(rehearsal.services.node, trial)
            time.sleep(_BETWEEN_SECONDS)
    rehearsal.settle()
    trial.calls = len(traffic.calls)
    with psycopg.connect(rehearsal.services.database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM credits_entry WHERE source = 'RELAY_REVERSAL'"
        ).fetchone()
    trial.reversed = row[0] if row else 0
    trial.wrong += [f"a call was refused: {call.refusal}" for call in traffic.calls if call.refusal]
    return rehearsal.result(traffic.calls, since=began)


def _kill(node: Node, trial: Trial) -> None:
    """Kill the client, and start it again on what it has on disk."""
    node.kill()
    time.sleep(_AWAY_SECONDS)
    node.start()
    node.wait()
    trial.kills += 1


def _lose_the_chain(rehearsal: Rehearsal, traffic: Traffic, trial: Trial) -> None:
    """Kill a client that starts again with an empty chain: the service must neither accept nor charge anything."""
    before = _moved(rehearsal)
    with step("a kill that loses the chain"):
        _kill(rehearsal.services.node, trial)
        with traffic.running(patience=_BETWEEN_SECONDS):
            time.sleep(_BETWEEN_SECONDS)
    accepted = sum(bool(call.transaction_hash) for call in traffic.calls)
    trial.wrong += [f"{accepted} calls were accepted on an empty chain"] if accepted else []
    trial.wrong += ["credits have moved on an empty chain"] if _moved(rehearsal) != before else []


def _moved(rehearsal: Rehearsal) -> tuple[object, ...]:
    with psycopg.connect(rehearsal.services.database_url) as connection:
        return connection.execute("SELECT count(*), sum(amount) FROM credits_entry").fetchone() or ()


def reorganisation_of(client: type[Node], services: Services) -> Callable[[], None]:
    """Return what replaces the blocks from now on by others, without the transactions in them."""
    rpc = services.rpc
    if client is Edr:
        snapshot = rpc.call("evm_snapshot")
        return lambda: _require(rpc.call("evm_revert", snapshot))
    number = _height(rpc)
    if client is Geth:
        return lambda: rpc.call("debug_setHead", hex(number))
    return lambda: rpc.call("anvil_reorg", _height(rpc) - number, [])


def _require(succeeded: bool) -> None:
    if not succeeded:
        raise RuntimeError("the client did not return to its snapshot")


def _height(rpc: Rpc) -> int:
    return int(rpc.call("eth_blockNumber"), 16)


def report(name: str, trial: Trial) -> None:
    """Print the outcome on one client."""
    shown = "; ".join(trial.wrong[:_SHOWN])
    verdict = f"{len(trial.wrong)} differences: {shown}" if trial.wrong else "no difference"
    figures = f"{trial.calls} calls, {trial.reversed} settlements reversed, {trial.kills} kills"
    echo(f"{name} ({trial.version}): {figures}; {verdict}")
