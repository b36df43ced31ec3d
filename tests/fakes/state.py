"""What the fake chain is made of: accounts, contracts, blocks, the gas table, a target that fails on demand."""

from dataclasses import dataclass, field

from gateway.chain.types import ExternalExecution, Head, Receipt
from tests.fakes import lukso
from tests.fakes.lukso import KeyManagerContract, ProfileContract
from tests.fakes.pool import Transaction
from tests.fakes.profiles import random_address


@dataclass
class GasTable:
    """Gas of any relay call here: what the node estimates, what it needs as a limit, what it burns."""

    estimate: int = 112_000
    needed: int = 100_000
    used: int = 77_500
    first_of_channel: int = 16_600
    reverted: int = 83_700
    follower_margin: int = 20_000
    self_transfer: int = 21_000
    deployment: int = 460_000
    copy_with_removal: int = 540_000


@dataclass
class Account:
    nonce: int = 0
    balance_wei: int = 0


@dataclass
class State:
    """Everything that a block changes, so that a reorganisation can bring it back."""

    accounts: dict[str, Account] = field(default_factory=dict)
    profiles: dict[str, ProfileContract] = field(default_factory=dict)
    key_managers: dict[str, KeyManagerContract] = field(default_factory=dict)

    def account(self, address: str) -> Account:
        return self.accounts.setdefault(address, Account())

    @property
    def nonces(self) -> dict[str, int]:
        return {address: account.nonce for address, account in self.accounts.items()}


@dataclass
class Block:
    head: Head
    block_hash: str
    before: State
    nonces: dict[str, int] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    receipts: dict[str, Receipt] = field(default_factory=dict)
    executions: list[tuple[str, str, ExternalExecution]] = field(default_factory=list)


class Flaky:
    """A target that takes any call; once flipped it reverts until flipped again."""

    def __init__(self) -> None:
        self.address = random_address()
        self.is_failing = False
        self.revert_data = b""

    def flip(self, revert_data: bytes = b"") -> None:
        """Make it revert, with this data, or succeed again."""
        self.is_failing, self.revert_data = not self.is_failing, revert_data

    def answer(self) -> bytes | None:
        """Return what it reverts with, None while it succeeds."""
        if not self.is_failing:
            return None
        return self.revert_data or lukso.custom_error("Error(string)", "ERC725X: Unknown Error")
