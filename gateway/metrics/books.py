"""Figures of credits, earnings, check-ins and payments."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from checkin import queries as checkin_queries
from credits import queries as credits_queries
from gateway.metrics.families import gauge, gauges
from payments import queries as payments_queries


def ledger() -> Iterator[Metric]:
    """Yield sums over all accounts, and what is open, in one statement."""
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
    yield gauge("postbacks_held", "Earnings that wait before they are given.", found.held_earnings)
    yield gauge("postbacks_held_credits", "Credits of the held earnings.", found.held_earning_credits)
    yield gauge(
        "postbacks_held_overdue_seconds",
        "Since the oldest held earning of an enabled network should have been given; 0 where none is late.",
        found.overdue_age,
    )
    yield gauge(
        "postbacks_refused_in_last_day",
        "Postbacks of the last 24 hours that were signed and refused.",
        found.refused_postbacks,
    )
    yield gauge(
        "postbacks_conflicting_in_last_day",
        "Postbacks of the last 24 hours that came again saying something else.",
        found.conflicting_postbacks,
    )


def doors() -> Iterator[Metric]:
    """Yield what staff have paused or disabled, in two statements."""
    yield gauge("check_ins_paused", "1 while staff have paused all check-ins.", checkin_queries.is_paused())
    yield gauges(
        "ad_network_enabled",
        "1 where postbacks of the network are taken.",
        "network",
        credits_queries.networks(),
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
