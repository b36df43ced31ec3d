"""Time, for the client of the controls."""

from devstack.stripe.steering.channel import Channel


class Time(Channel):
    """Moves the double's time."""

    @property
    def now(self) -> int:
        """The double's present second."""
        return int(self._ask("GET", "clock")["now"])

    def set_clock(self, moment: int) -> None:
        """Set the time of a double in which nothing has happened yet, backwards too."""
        self._tell("clock", to=moment)

    def advance(self, seconds: int) -> int:
        """Let time pass with all that falls due on the way, deliveries included; return the new time."""
        return int(self._tell("advance", seconds=seconds)["now"])

    def advance_to(self, moment: int) -> int:
        """Like `advance`, up to a moment."""
        return int(self._tell("advance", to=moment)["now"])

    def settle(self, timeout: float = 30) -> int:
        """Return once no delivery is due, with the number of those that wait for later or are held."""
        return int(self._tell("settle", timeout=timeout)["waiting"])

    def reset(self) -> None:
        """Forget everything but the webhook endpoints; the time is the real one again."""
        self._tell("reset")
