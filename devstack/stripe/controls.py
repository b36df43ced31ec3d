"""The client of the controls: what a merchant, a bank or a network might do to the double."""

from devstack.stripe.steering.channel import ControlRefused
from devstack.stripe.steering.deliveries import Deliveries
from devstack.stripe.steering.people import People
from devstack.stripe.steering.requests import LoggedRequest, Requests
from devstack.stripe.steering.time import Time

__all__ = ["ControlRefused", "Controls", "LoggedRequest"]


class Controls(Time, Deliveries, Requests, People):
    """Steers one running double, given its address and secret key."""

    def behave(self) -> None:
        """Disturb neither deliveries nor requests any more; what is held stays held."""
        self._tell("deliveries/behave")
        self._tell("requests/behave")
