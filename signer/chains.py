"""A chain for which the signer signs: its limits, its trusted code, and what the keys have spent on it."""

from dataclasses import dataclass
from typing import NamedTuple

from signer.keys import Keyring
from signer.policy import NO_DEPLOYMENTS, Budget, DeploymentLimits, Kind, TransactionLimits
from signer.targets import Targets
from signer.transactions import PolicyViolation

HOUR, DAY = 3600.0, 86_400.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits of one transaction, of each relayer's gas per hour, of the treasury's transfers, and of deployments."""

    limits: TransactionLimits
    gas_per_hour: int
    # The maximum gas of a call to untrusted code; 0 means that no such call is signed.
    max_gas_untrusted: int
    transfer_wei: int
    transfers_per_day_wei: int
    deploys: DeploymentLimits = NO_DEPLOYMENTS
    # The maximum gas of all relayers' deployments.
    deployment_gas_per_day: int = 0


class ServedChain(NamedTuple):
    """The policy of a chain, and the reader of its contracts and account nonces."""

    policy: Policy
    targets: Targets

    @property
    def id(self) -> int:
        """The chain's id."""
        return self.policy.limits.chain_id


class Spending:
    """What each key has spent on one chain: gas of an hour, or wei of a day; and the deployments of a day."""

    def __init__(self, policy: Policy, keys: Keyring) -> None:
        self._policy = policy
        self._budgets = {address: Budget(seconds=HOUR) for address in keys.for_calls}
        if keys.treasury:
            self._budgets[keys.treasury.address] = Budget(seconds=DAY)
        self._deployments = Budget(seconds=DAY)

    def restore(self, address: str, kind: Kind, amount: int, *, at: float) -> None:
        """Count what was signed before this process started, within the limits or not."""
        if address in self._budgets:
            self._budgets[address].spend(amount, now=at)
        if kind == Kind.DEPLOYMENT:
            self._deployments.spend(amount, now=at)

    def spend(self, address: str, kind: Kind, added: int, *, now: float) -> None:
        """
        Count gas or wei that a key is about to spend.

        Raises:
            PolicyViolation: a limit is reached; nothing is counted.
        """
        budget, limit = self._budgets[address], self._policy.gas_per_hour
        if kind == Kind.TRANSFER:
            limit = self._policy.transfers_per_day_wei
        elif kind == Kind.SELF_TRANSFER:
            # A higher limit, so that a relayer that has reached its limit can still fill an unused account nonce.
            limit += limit // 10
        if added and budget.spent(now=now) + added > limit:
            raise PolicyViolation("this key has reached its limit for now", refusal="used-up")
        if kind == Kind.DEPLOYMENT:
            if self._deployments.spent(now=now) + added > self._policy.deployment_gas_per_day:
                raise PolicyViolation("the deployments of a day have reached their limit", refusal="used-up")
            self._deployments.spend(added, now=now)
        budget.spend(added, now=now)

    def spent(self, *, now: float) -> dict[str, int]:
        """Return each key's spending: gas of the last hour, wei of the last day."""
        return {address: budget.spent(now=now) for address, budget in self._budgets.items()}
