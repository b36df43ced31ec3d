"""The sweep: finds by itself the work whose message was lost."""

from datetime import datetime, timedelta

from gateway.common.locks import try_advisory_lock
from relay.models import Attempt
from relay.services import broadcasting
from relay.services.isolation import isolated

# A worker that got the message needs about this long, in seconds.
_HEAD_START = timedelta(seconds=2)


def sweep(*, now: datetime) -> int:
    """
    Broadcast what was signed a while ago, and again what was sent long ago; return how many the node took.

    Raises:
        NodeUnavailable: no node answered.
    """
    with try_advisory_lock("relay.sweep") as acquired:
        if not acquired:
            return 0
        waiting = Attempt.objects.unsent().filter(created_at__lt=now - _HEAD_START)
        relayer_ids = list(waiting.values_list("relayer_id", flat=True).distinct().order_by("relayer_id"))
        sent = 0
        for relayer_id in relayer_ids:
            with isolated(f"broadcasting for relayer {relayer_id}"):
                sent += broadcasting.broadcast(relayer_id=relayer_id, now=now)
        return sent + broadcasting.resend(now=now)
