"""Rows of the relay: sending accounts, what was asked, what was broadcast, whose code is trusted."""

from relay.models.attempts import Attempt
from relay.models.implementations import TrustedImplementation
from relay.models.relayers import Relayer
from relay.models.switches import RelaySwitch
from relay.models.transactions import RelayTransaction

__all__ = ["Attempt", "RelaySwitch", "RelayTransaction", "Relayer", "TrustedImplementation"]
