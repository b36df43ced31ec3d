"""The gauge of the newest root, for an alert if no root is being closed."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from gateway.common.metrics import gauge, register
from proofs.models import LedgerRoot


@register
def roots() -> Iterator[Metric]:
    """Yield when the newest root was closed, in one statement."""
    newest = LedgerRoot.objects.order_by("-number").first()
    yield gauge(
        "ledger_root_closed_timestamp_seconds",
        "When the newest signed root over the entries was closed, in unix seconds; 0 without one.",
        newest.closed_at.timestamp() if newest else 0.0,
    )
