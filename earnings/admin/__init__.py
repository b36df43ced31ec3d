"""The admin of ad networks and their postbacks."""

from earnings.admin import networks, postbacks
from earnings.models import PostbackState
from gateway.admin import columns, navigation

__all__ = ["networks", "postbacks"]


navigation.register(
    "Ad networks",
    {"earnings.AdNetwork": "hub", "earnings.Postback": "webhook", "earnings.NetworkUser": "alternate_email"},
)


_State = PostbackState
columns.describe(
    {
        _State.RECEIVED: "Waiting for its credit",
        _State.PENDING: "Pending at the network",
        _State.UNASSIGNED: "Names no user",
        _State.HELD: "Held",
        _State.AVAILABLE: "Credited",
        _State.REFUSED: "Refused",
    }
)
columns.colour("good", _State.AVAILABLE)
columns.colour("bad", _State.REFUSED)
columns.colour("waiting", _State.HELD, _State.PENDING, _State.RECEIVED, _State.UNASSIGNED)
