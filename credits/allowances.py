from dataclasses import dataclass
from datetime import datetime, timedelta

# Card renewals are collected 1-72 h after the period turns; nobody loses the service meanwhile.
RENEWAL_GRACE = timedelta(hours=72)


@dataclass(frozen=True, kw_only=True)
class PaidPeriod:
    """The period that was paid for last, and what is known about the next one."""

    credits: int
    starts_at: datetime
    ends_at: datetime
    resets_at: datetime
    renews: bool

    def runs_at(self, now: datetime) -> bool:
        """Return whether the user counts as subscribed: within the period, or awaiting its renewal."""
        grace = RENEWAL_GRACE if self.renews else timedelta()
        return self.starts_at <= now < self.ends_at + grace

    def reset_after(self, now: datetime) -> datetime:
        """Return when the credits of the period are counted anew."""
        return self.ends_at if now < self.ends_at else self.resets_at
