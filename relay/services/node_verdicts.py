"""What to do when the node does not take an attempt's bytes."""

from datetime import datetime

from gateway.chain.fees import Fees
from gateway.chain.types import SendKind, SendOutcome
from relay.models import Attempt, RelayTransaction
from relay.services import dead_ends, replacing


def note_message(*, attempt: Attempt, outcome: SendOutcome) -> None:
    """Keep the node's own words for staff."""
    message = outcome.message[:500]
    if message != attempt.node_message:
        Attempt.objects.filter(pk=attempt.pk).update(node_message=message)


def handle_refusal(*, attempt: Attempt, outcome: SendOutcome, fees: Fees, now: datetime) -> None:
    """
    Offer more where the price was the reason; end a call that the node refuses for good.

    A self-transfer that is refused stays and is sent again by the sweep: the account
    nonce must be used up, and the reason (an empty relayer, a costly hour) passes.
    """
    note_message(attempt=attempt, outcome=outcome)
    if outcome.kind == SendKind.UNDERPRICED and replacing.replace(attempt_id=attempt.pk, fees=fees, now=now):
        return
    if attempt.kind == Attempt.Kind.CALL:
        dead_ends.begin(
            attempt=attempt,
            ends_as=RelayTransaction.Status.CANCELLED,
            code="refused-by-node",
            detail=f"The node refused the transaction: {outcome.message[:300]}",
            fees=fees,
            now=now,
        )
