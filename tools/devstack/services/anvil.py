"""The chain: an anvil node that keeps its blocks across restarts."""

import json
from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from devstack.ports import free_port
from devstack.rpc import Rpc, RpcUnreachable
from devstack.services.server import Server
from devstack.toolchain import anvil_binary, install_toolchain

CHAIN_ID = 4201
SECOND_CHAIN_ID = 84532
GAS_LIMIT = 1_000_000_000
_SAVE_SECONDS = 10
_BLOCKS_TO_LOOK_BACK = 32
_BLOCKS_WITH_STATE = 512


class Node(Server):
    """A node of a development chain."""

    chain_id: ClassVar[int] = CHAIN_ID
    keeps_its_chain: ClassVar[bool] = True
    """Whether a killed node has its chain again when it is started, apart from the newest blocks."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The JSON-RPC URL."""

    @property
    def rpc(self) -> Rpc:
        """The client of the development world, which knows anvil's control methods."""
        return Rpc(self.url)

    def answers(self) -> bool:
        """Return whether the node responds with its chain id."""
        try:
            return int(Rpc(self.url, timeout=2).call("eth_chainId"), 16) == self.chain_id
        except RpcUnreachable:
            return False

    def mine_a_past(self) -> None:
        """Mine blocks before the first use, if the node needs them."""


class Anvil(Node):
    """One node of chain 4201, or of another one in a subclass, without anvil's public test accounts."""

    name: ClassVar[str] = "anvil"

    def __init__(
        self,
        directory: Path,
        log_directory: Path,
        *,
        block_time: float | None,
        host: str = "127.0.0.1",
        saves_meanwhile: bool = True,
    ) -> None:
        """
        `block_time` in seconds; None mines every transaction at once.

        Without `saves_meanwhile`, a killed node loses its blocks. Saving them pauses the node, for 0.4 s after some
        thousands of transactions.
        """
        super().__init__(directory, log_directory)
        self._host, self._saves_meanwhile = host, saves_meanwhile
        self._block_time = block_time
        self._port = free_port()

    def prepare(self) -> None:
        """Install the node; move a truncated state file aside."""
        super().prepare()
        install_toolchain()
        if self._state.exists() and not _is_json(self._state):
            self._state.rename(self._state.with_suffix(".unreadable"))

    def command(self) -> list[str]:
        """Return the foreground server; it saves its state when it stops.

        It keeps the states of the last 512 blocks. By default it would keep all, in files outside of `directory` that
        remain after a kill: gigabytes in a run of the tests.
        """
        place = ["--host", self._host, "--port", str(self._port)]
        chain = ["--chain-id", str(self.chain_id), "--gas-limit", str(GAS_LIMIT), "--accounts", "0"]
        state = ["--state", str(self._state)]
        state += ["--state-interval", str(_SAVE_SECONDS)] if self._saves_meanwhile else []
        history = ["--prune-history", str(_BLOCKS_WITH_STATE)]
        pace = [] if self._block_time is None else ["--block-time", f"{self._block_time:g}"]
        return [str(anvil_binary()), *place, *chain, *state, *history, *pace]

    def mine_a_past(self) -> None:
        """Mine some empty blocks, because after a restart the node has only the newest block's state."""
        Rpc(self.url).call("anvil_mine", hex(_BLOCKS_TO_LOOK_BACK))

    @property
    def url(self) -> str:
        """The JSON-RPC URL."""
        return f"http://{self._host}:{self._port}"

    @property
    def _state(self) -> Path:
        return self.directory / "state.json"


# Words of the contract L1Block, by slot: L1's base fee, the scalars of Base (2,269 and 1,055,762), L1's blob base fee,
# and the operator's fee, of which each transaction pays 1,000 wei for a million gas, and 5,000,000 wei.
_L1_BLOCK = "0x4200000000000000000000000000000000000015"
_SCALARS = (2_269 << 96) + (1_055_762 << 64)
_OPERATOR = (1_000 << 64) + 5_000_000
_ZERO_ADDRESS = "0x" + "00" * 20
_L1_BASE_FEE_WEI, _L1_BLOB_BASE_FEE_WEI = 10**9, 10**7


class OpAnvil(Anvil):
    """
    One node of chain 84532, which belongs to the OP stack.

    It takes the fees for L1 and for the operator from each sender's balance, but names them in no receipt. Unlike nodes
    of such chains, it also wants them for calls that are only simulated.
    """

    name: ClassVar[str] = "anvil-op"
    chain_id: ClassVar[int] = SECOND_CHAIN_ID

    def command(self) -> list[str]:
        """Return the foreground server."""
        return [*super().command(), "--network", "optimism"]

    def mine_a_past(self) -> None:
        """Set L1's prices, and mine some empty blocks."""
        self.set_l1_prices(base_fee_wei=_L1_BASE_FEE_WEI, blob_base_fee_wei=_L1_BLOB_BASE_FEE_WEI)
        # Calls without a sender are simulated from this address.
        self.rpc.call("anvil_setBalance", _ZERO_ADDRESS, hex(10**24))
        super().mine_a_past()

    def set_l1_prices(self, *, base_fee_wei: int, blob_base_fee_wei: int) -> None:
        """Change L1's prices from the next block on, and mine a block before it."""
        # anvil also changes the state of the newest block, by which the fees of its transactions are read later.
        self.rpc.call("evm_mine")
        words = {1: base_fee_wei, 3: _SCALARS, 7: blob_base_fee_wei, 8: _OPERATOR}
        self.rpc.batch(
            [("anvil_setStorageAt", _L1_BLOCK, hex(slot), f"0x{word:064x}") for slot, word in words.items()]
        )


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True
