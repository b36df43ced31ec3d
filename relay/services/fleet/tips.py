"""
The lowest tip that a quorum of nodes takes, learned from their errors while it is above ours.

New calls and replacements offer it, within the fee cap. It is forgotten when the nodes take bytes with less, or when
nothing has confirmed it for an hour. Bytes that were refused are sent again for that purpose once their account nonce
is used: they can no longer be mined, and nodes check the tip first.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.types import SendOutcome
from gateway.common import clock
from relay.models import LeastTip

logger = logging.getLogger(__name__)
# `call_rows` in relay/queries/calls.sql has the same limit.
_KEPT = timedelta(hours=1)


class Evidence(NamedTuple):
    """An attempt that was sent with this tip, and the outcome."""

    attempt_id: int
    tip_wei: int
    outcome: SendOutcome


def least_tip_wei() -> int:
    """Return the tip that the nodes require, in wei per gas; 0 if they take ours."""
    learned = LeastTip.objects.filter(chain_id=get_chain().id, confirmed_at__gt=clock.now() - _KEPT).first()
    return 0 if learned is None else int(learned.tip_wei)


def note(evidence: Iterable[Evidence], *, now: datetime) -> None:
    """Learn or forget the lowest tip from what the nodes made of these attempts."""
    known = [one for one in evidence if one.outcome.least_tip_wei is not None]
    if not known:
        return
    learned = LeastTip.objects.filter(chain_id=get_chain().id).first()
    attempt_id, tip_wei, outcome = max(known, key=lambda one: one.outcome.least_tip_wei or 0)
    least = outcome.least_tip_wei or 0
    if least > tip_wei:
        LeastTip.objects.update_or_create(
            chain_id=get_chain().id,
            defaults={"tip_wei": least, "attempt_id": attempt_id, "confirmed_at": now},
            create_defaults={
                "tip_wei": least,
                "attempt_id": attempt_id,
                "confirmed_at": now,
                "learned_at": now,
            },
        )
        if learned is None or learned.tip_wei != least:
            logger.warning("the nodes require a tip of %d wei per gas; %d was offered", least, tip_wei)
    elif learned is not None and min(one.tip_wei for one in known) < learned.tip_wei:
        learned.delete()
        logger.warning("the nodes no longer require a tip of %d wei per gas", learned.tip_wei)


def review(*, now: datetime) -> None:
    """Ask the nodes whether they still require the tip, with bytes whose account nonce is used."""
    due = now - timedelta(seconds=get_chain().pace.replace_seconds)
    learned = (
        LeastTip.objects.filter(
            chain_id=get_chain().id,
            confirmed_at__lt=due,
            attempt__relay_transaction__settled_at__isnull=False,
        )
        .select_related("attempt")
        .first()
    )
    if learned is None:
        return
    attempt = learned.attempt
    (outcome,) = get_chain_client().send_raw_transactions([bytes(attempt.raw)])
    note([Evidence(attempt.pk, int(attempt.max_priority_fee_per_gas_wei), outcome)], now=now)
