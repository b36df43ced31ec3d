"""Deliveries, for the client of the controls."""

from collections.abc import Sequence

from devstack.stripe.steering.channel import Channel, Thing

Order = str | Sequence[str]


class Deliveries(Channel):
    """Sees, disturbs and repeats what is sent to webhook endpoints."""

    def point(self, url: str, secret: str) -> None:
        """Send every event to a URL, signed with the secret."""
        self._tell("endpoint", url=url, secret=secret)

    def deliveries(self, state: str = "pending") -> list[Thing]:
        """Return the deliveries that are pending (held ones too), delivered or given_up."""
        return list(self._ask("GET", f"deliveries?state={state}")["deliveries"])

    def duplicate(self, times: int = 1, *, types: Sequence[str] | None = None, count: int | None = 1) -> None:
        """Send the next `count` deliveries `times` times more."""
        self._tell("deliveries/duplicate", times=times, types=types, count=count)

    def drop(
        self, *, types: Sequence[str] | None = None, count: int | None = 1, reported_as: str = "failed"
    ) -> None:
        """Lose the next `count` deliveries; Stripe believes them failed or delivered."""
        self._tell("deliveries/drop", types=types, count=count, reported_as=reported_as)

    def delay(self, seconds: int, *, types: Sequence[str] | None = None, count: int | None = 1) -> None:
        """Let the next `count` deliveries leave later."""
        self._tell("deliveries/delay", seconds=seconds, types=types, count=count)

    def corrupt(
        self, how: str = "signature", *, types: Sequence[str] | None = None, count: int | None = 1
    ) -> None:
        """
        Spoil the next `count` deliveries.

        `how`: a random signature, one changed bit of the body, another secret, an old or a
        future time, a missing signature; or, well signed, livemode true or another api_version.
        """
        self._tell("deliveries/corrupt", how=how, types=types, count=count)

    def hold(self, *, types: Sequence[str] | None = None) -> None:
        """Keep deliveries back until `release`."""
        self._tell("deliveries/hold", types=types)

    def release(self, order: Order = "original", *, seed: int | None = None) -> int:
        """Send what is held: original, reversed, shuffled, or in an order of event ids."""
        return int(self._tell("deliveries/release", order=order, seed=seed)["released"])

    def replay(
        self,
        *,
        types: Sequence[str] | None = None,
        events: Sequence[str] | None = None,
        order: Order = "original",
        seed: int | None = None,
    ) -> int:
        """Deliver past events once more; return how many."""
        return int(
            self._tell("deliveries/replay", types=types, events=events, order=order, seed=seed)["replayed"]
        )

    def reissue(self, event: str) -> str:
        """Tell the same event again under a new id, which is returned."""
        return str(self._tell("events/reissue", event=event)["event"])
