"""
Figures in the form Prometheus expects. All are gauges: the rows are counted at each scrape.

Figures of the relay and of the accounts that pay for it.

Figures of credits, earnings, check-ins and payments.

When the books were last compared, and what was found.

Figures of beat, the workers and the messages between them.

Everything a scrape answers, in a fixed number of statements.

GET /metrics, for a Prometheus server that has the token.
"""

import hmac
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from celery.schedules import crontab
from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from checkin import queries as checkin_queries
from credits import queries as credits_queries
from credits.models import ReconciliationRun
from credits.queries import last_reconciliations
from earnings import queries as earnings_queries
from gateway.admin.pauses import is_paused
from gateway.common import heartbeats
from gateway.common.errors import NotAuthenticated, NotFound
from payments import queries as payments_queries
from relay import queries
from relay.models import RelayTransaction

_PREFIX = "gateway_"


def gauge(name: str, told: str, value: float) -> Metric:
    """Return a figure for the whole service; `told` says in one sentence what it counts, and its unit."""
    return GaugeMetricFamily(_PREFIX + name, told, value=float(value))


def gauges(name: str, told: str, label: str, values: Mapping[str, float]) -> Metric:
    """Return one figure for each value of a label."""
    found = GaugeMetricFamily(_PREFIX + name, told, labels=[label])
    for of, value in values.items():
        found.add_metric([of], float(value))
    return found


_Status = RelayTransaction.Status


def calls(*, now: datetime) -> Iterator[Metric]:
    """Yield the state of calls, in two statements."""
    found = queries.figures()
    yield gauges(
        "relay_calls_in_progress",
        "Calls that are accepted and not settled.",
        "status",
        {_Status.PENDING.value: found.pending, _Status.SUBMITTED.value: found.submitted},
    )
    yield gauges(
        "relay_calls_ended_in_last_hour",
        "Calls that were settled within the last hour, of those accepted within the last 25 hours.",
        "status",
        queries.ended(since=now - timedelta(hours=1)),
    )
    yield gauge(
        "relay_oldest_call_age_seconds", "Since the oldest call in progress was accepted.", found.oldest_age
    )
    yield gauge(
        "relay_oldest_unsent_age_seconds",
        "Since the oldest attempt was signed that was never sent; 0 without one.",
        found.unsent_age,
    )
    yield gauge(
        "relay_oldest_unmined_age_seconds",
        "Since a call was first sent of which nothing is mined, the oldest; 0 without one.",
        found.unmined_age,
    )
    yield gauge("relay_paused", "1 while staff have paused the whole relay.", found.is_paused)


def relayers() -> Iterator[Metric]:
    """Yield what each relayer holds and has in flight, in one statement."""
    found = queries.relayers()
    yield gauges(
        "relayer_balance_wei",
        "Wei that the account held when the tracker last read it.",
        "relayer",
        {row.address: row.balance_wei for row in found},
    )
    yield gauges(
        "relayer_read_timestamp_seconds",
        "When the tracker last read the account from a node, in unix seconds.",
        "relayer",
        {row.address: row.synced_at.timestamp() for row in found if row.synced_at},
    )
    yield gauges(
        "relayer_account_nonces_in_flight",
        "Account nonces that are taken and not mined.",
        "relayer",
        {row.address: row.in_flight for row in found},
    )
    yield gauges(
        "relayer_active",
        "1 where the relayer takes new calls, 0 where staff have paused it.",
        "relayer",
        {row.address: row.is_active for row in found},
    )


def ledger() -> Iterator[Metric]:
    """Yield sums over all accounts, and what is held, in one statement."""
    found = credits_queries.figures()
    yield gauge("credit_accounts", "Credit accounts.", found.accounts)
    yield gauge("credits_outstanding", "Credits that users own: the sum of balances above 0.", found.owned)
    yield gauge("credits_owed", "Credits that users owe: the sum of balances below 0.", found.owed)
    yield gauge("credits_held", "Credits set aside, as the accounts say.", found.held)
    yield gauge("credit_holds_open", "Holds that are neither captured nor released.", found.open_holds)
    yield gauge("credit_holds_open_credits", "Credits of the open holds.", found.open_hold_credits)
    yield gauge(
        "credit_holds_oldest_age_seconds", "Since the oldest open hold was made.", found.oldest_hold_age
    )


def earnings() -> Iterator[Metric]:
    """Yield what is held of earnings, and what was refused lately, in one statement."""
    found = earnings_queries.postback_figures()
    yield gauge("postbacks_held", "Earnings that wait before they are given.", found.held)
    yield gauge("postbacks_held_credits", "Credits of the held earnings.", found.held_credits)
    yield gauge(
        "postbacks_held_overdue_seconds",
        "Since the oldest held earning of an enabled network should have been given; 0 where none is late.",
        found.overdue_age,
    )
    yield gauge(
        "postbacks_refused_in_last_day",
        "Postbacks of the last 24 hours that were signed and refused.",
        found.refused,
    )
    yield gauge(
        "postbacks_conflicting_in_last_day",
        "Postbacks of the last 24 hours that came again saying something else.",
        found.conflicting,
    )


def doors() -> Iterator[Metric]:
    """Yield what staff have paused or disabled, in two statements."""
    yield gauge(
        "check_ins_paused", "1 while staff have paused all check-ins.", is_paused(checkin_queries.CHECK_INS)
    )
    yield gauges(
        "ad_network_enabled",
        "1 where postbacks of the network are taken.",
        "network",
        earnings_queries.networks(),
    )


def payments() -> Iterator[Metric]:
    """Yield what waits for Stripe, or because of it, in one statement."""
    found = payments_queries.figures()
    yield gauges(
        "stripe_events_waiting",
        "Delivered events that are not applied: received, or failed and tried again.",
        "status",
        {"received": found.received_events, "failed": found.failed_events},
    )
    yield gauge(
        "stripe_events_oldest_age_seconds",
        "Since the oldest event came that is not applied; 0 without one.",
        found.oldest_event_age,
    )
    yield gauge(
        "billing_operations_pending",
        "Changes that were begun at Stripe and are not finished.",
        found.pending_operations,
    )
    yield gauge(
        "billing_operations_oldest_age_seconds",
        "Since the oldest pending change was begun; 0 without one.",
        found.oldest_operation_age,
    )


def reconciliations() -> Iterator[Metric]:
    """Yield the last run of each comparison, in one statement; nothing for one that never finished."""
    runs = last_reconciliations()
    yield gauges(
        "reconciliation_scheduled",
        "1 for each comparison that is made by night on this service.",
        "comparison",
        dict.fromkeys(_scheduled(), 1),
    )
    yield gauges(
        "reconciliation_finished_timestamp_seconds",
        "When the comparison last came to its end, in unix seconds.",
        "comparison",
        {run.kind: run.finished_at.timestamp() for run in runs if run.finished_at},
    )
    yield gauges(
        "reconciliation_findings",
        "Differences that the last finished comparison found.",
        "comparison",
        {run.kind: run.counts.get("findings", 0) for run in runs},
    )


def _scheduled() -> list[str]:
    kinds = [kind.value for kind in ReconciliationRun.Kind]
    return kinds if settings.STRIPE_SECRET_KEY else [kind for kind in kinds if kind != "stripe"]


_QUEUES = ("relay", "default")
_DAY = 86_400.0


def periodic_tasks() -> Iterator[Metric]:
    """Yield what Redis holds, in one round trip; while it is away, yield only that."""
    yield gauges(
        "periodic_task_period_seconds",
        "How often beat rings the task.",
        "task",
        {str(entry["task"]): _period(entry["schedule"]) for entry in settings.CELERY_BEAT_SCHEDULE.values()},
    )
    found = heartbeats.read(queues=_QUEUES)
    yield gauge("redis_up", "1 where Redis answered just now.", found is not None)
    if found is None:
        return
    yield gauges(
        "periodic_task_ended_timestamp_seconds",
        "When the task last ended, however it did, in unix seconds.",
        "task",
        found.ended,
    )
    yield gauges(
        "periodic_task_succeeded_timestamp_seconds",
        "When the task last ended without an error, in unix seconds.",
        "task",
        found.succeeded,
    )
    yield gauges("queue_messages", "Messages that no worker has taken yet.", "queue", found.waiting)


def _period(schedule: Any) -> float:
    """Return the seconds between two runs. A task at a fixed time runs once a day here."""
    return _DAY if isinstance(schedule, crontab) else float(schedule)


class Figures(Collector):
    """Reads the rows at each scrape and keeps nothing, so any process answers for the whole service."""

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from calls(now=timezone.now())
        yield from relayers()
        yield from ledger()
        yield from earnings()
        yield from doors()
        yield from payments()
        yield from reconciliations()
        yield from periodic_tasks()


def exposition() -> bytes:
    """Return all figures in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    return generate_latest(registry)


class MetricsView(APIView):
    """
    The service's figures, for the operator only; without METRICS_TOKEN the page answers 404.

    The OpenAPI document does not describe this view.
    """

    schema = None
    authentication_classes = ()
    permission_classes = (AllowAny,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check the token before anything else, even the method."""
        if not settings.METRICS_TOKENS:
            raise NotFound("There is nothing at this address.")
        if not _is_known(request.headers.get("Authorization", "")):
            raise NotAuthenticated("This address needs the header Authorization: Bearer <METRICS_TOKEN>.")
        super().initial(request, *args, **kwargs)

    def get(self, request: Request) -> HttpResponse:
        """Answer in the text format of Prometheus."""
        return HttpResponse(
            exposition(), content_type=CONTENT_TYPE_PLAIN_0_0_4, headers={"Cache-Control": "no-store"}
        )


def _is_known(header: str) -> bool:
    """Compare with every token, in constant time."""
    scheme, _, token = header.partition(" ")
    given = token.strip().encode()
    found = [hmac.compare_digest(given, known.encode()) for known in settings.METRICS_TOKENS]
    return scheme.lower() == "bearer" and any(found)
