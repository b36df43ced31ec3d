"""The admin of the relay: its rows are read-only, with actions for operations."""

from gateway.admin import columns, navigation
from gateway.admin.admin import offer_pause
from relay.admin import calls, creations, holds, losses, prices, relayers
from relay.models import Attempt, RelayTransaction, TopUp
from relay.queries.calls import RELAY

__all__ = ["calls", "creations", "holds", "losses", "prices", "relayers"]

navigation.register(
    "Relay",
    {
        "relay.RelayTransaction": "sync_alt",
        "relay.Attempt": "outbox",
        "relay.Relayer": "key",
        "relay.TopUp": "savings",
        "relay.Loss": "local_fire_department",
        "relay.CreditPrice": "price_change",
        "relay.ProfileCreation": "person_add",
    },
)

_Call, _Attempt = RelayTransaction.Status, Attempt.Status
columns.colour("good", _Call.SUCCESS, _Call.EXECUTED_EXTERNALLY, _Attempt.MINED)
columns.colour("bad", _Call.FAILED, _Call.EXPIRED, _Call.CANCELLED, TopUp.Status.LOST)
columns.colour("waiting", _Call.PENDING, _Call.SUBMITTED, _Attempt.SIGNED, _Attempt.SENT)
columns.describe({_Call.EXECUTED_EXTERNALLY: "Executed by others", **calls.REASONS})

offer_pause(
    RELAY,
    title="the whole relay",
    effect="New calls are refused with 503. Accepted calls are broadcast and settled.",
)
