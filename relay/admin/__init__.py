"""The admin of the relay: its rows are read-only, with actions for operations."""

from gateway.admin import navigation
from gateway.admin.admin import offer_pause
from relay import queries
from relay.admin import calls, holds, losses, relayers

__all__ = ["calls", "holds", "losses", "relayers"]

navigation.register(
    "Relay",
    {
        "relay.RelayTransaction": "sync_alt",
        "relay.Attempt": "outbox",
        "relay.Relayer": "key",
        "relay.TopUp": "savings",
        "relay.Loss": "local_fire_department",
    },
)

offer_pause(
    queries.RELAY,
    title="the whole relay",
    effect="New calls are refused with 503. Accepted calls are broadcast and settled.",
)
