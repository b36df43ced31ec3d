"""What workers and beat do, called directly."""

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone

from credits.services import reconciliation as ledger
from gateway.chain.fees import Fees, bump
from relay.models import Attempt, Relayer
from relay.services.sending import broadcasting
from relay.services.settling import reconciliation, tracking
from tests.relay.chain import Chain


def later(seconds: float) -> datetime:
    """Return the time that many seconds from now."""
    return timezone.now() + timedelta(seconds=seconds)


def broadcast_all(*, now: datetime | None = None) -> int:
    """Send what every relayer has signed; return how many the node took."""
    relayers = Relayer.objects.order_by("pk")
    return sum(
        broadcasting.broadcast(relayer_id=relayer.pk, now=now or timezone.now()) for relayer in relayers
    )


def track(*, now: datetime | None = None) -> int:
    """Tick once; return how many relay transactions were settled."""
    settled, _ = tracking._track(now=now or timezone.now())
    return settled


def bumped_fees(attempt: Attempt) -> Fees:
    """Return fees that replace the attempt in the nodes' pools; they stay below the cap."""
    fees = Fees(attempt.max_fee_per_gas_wei, attempt.max_priority_fee_per_gas_wei, 1)
    raised = bump(fees, cap_wei=settings.RELAY_FEE_CAP_WEI)
    assert raised is not None
    return raised


def resend() -> int:
    """Send unmined transactions again. Those that a reorganisation removed are sent at once."""
    return broadcasting.resend(now=timezone.now())


def assert_books_agree() -> None:
    """The books agree with each other, and the ledger with itself."""
    assert ledger.find_differences() == []
    assert reconciliation.find_differences(since=timezone.now() - timedelta(days=1)) == []


def mine_and_settle(chain: Chain) -> int:
    """Confirm what is mined; return how many relay transactions were settled."""
    chain.mine(settings.CONFIRMATIONS)
    return track()
