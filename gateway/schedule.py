"""The periodic tasks that beat sends. A number is an interval in seconds; `expires` drops older messages."""

from typing import Any

from celery.schedules import crontab

Schedule = dict[str, dict[str, Any]]

_TASKS: Schedule = {
    "payments-events": {
        "task": "payments.process_due_events",
        "schedule": 10,
        "options": {"expires": 30},
    },
    "payments-operations": {"task": "payments.resume_operations", "schedule": 60, "options": {"expires": 60}},
    "payments-top-up": {"task": "payments.top_up", "schedule": 20, "options": {"expires": 20}},
    "payments-catch-up": {"task": "payments.catch_up", "schedule": 3600},
    "accounting-months": {"task": "accounting.prepare_months", "schedule": 60, "options": {"expires": 60}},
    "checkin-seeds": {"task": "checkin.keep_seeds", "schedule": 600, "options": {"expires": 600}},
    # At fixed times, because a restart of beat would restart a daily interval.
    "payments-subscriptions": {
        "task": "payments.refresh_subscriptions",
        "schedule": crontab(hour="2", minute="20"),
    },
    "earnings-purge": {"task": "earnings.purge", "schedule": crontab(hour="2", minute="50")},
    "rewards-purge": {"task": "rewards.purge", "schedule": crontab(hour="2", minute="55")},
    "credits-roots": {"task": "credits.close_roots", "schedule": 600, "options": {"expires": 600}},
    "credits-expiry": {"task": "credits.expire", "schedule": crontab(hour="1", minute="40")},
    "credits-debts": {"task": "credits.keep_debts", "schedule": 60, "options": {"expires": 60}},
    "credits-audit": {"task": "credits.audit_roots", "schedule": crontab(hour="3", minute="55")},
    "credits-reconcile": {"task": "credits.reconcile", "schedule": crontab(hour="3", minute="10")},
    "relay-reconcile": {"task": "relay.reconcile", "schedule": crontab(hour="3", minute="25")},
    "earnings-release": {"task": "earnings.release", "schedule": 60, "options": {"expires": 60}},
    "earnings-verifier-keys": {"task": "earnings.refresh_verifier_keys", "schedule": 900},
    "users-deletions": {
        "task": "users.end_billing_of_deleted",
        "schedule": 60,
        "options": {"expires": 60},
    },
    "webhooks-collect": {"task": "webhooks.collect", "schedule": 5, "options": {"expires": 5}},
    "webhooks-deliver": {"task": "webhooks.deliver", "schedule": 5, "options": {"expires": 5}},
    "webhooks-notices": {"task": "webhooks.send_notices", "schedule": 30, "options": {"expires": 30}},
    "webhooks-purge": {"task": "webhooks.purge", "schedule": crontab(hour="2", minute="45")},
    "users-purge": {"task": "users.purge", "schedule": 3600},
    "users-issuer-keys": {"task": "users.refresh_issuer_keys", "schedule": 300},
}
# Runs before the reconciliation, which reports the remaining differences.
_OF_STRIPE: Schedule = {
    "payments-money-back": {
        "task": "payments.claw_back",
        "schedule": crontab(hour="3", minute="0"),
    },
    "payments-reconcile": {
        "task": "payments.reconcile",
        "schedule": crontab(hour="3", minute="40"),
    },
}


def periodic_tasks(*, with_stripe: bool) -> Schedule:
    """Return the entries of beat; the nightly ones of Stripe only where it is used."""
    return _TASKS | (_OF_STRIPE if with_stripe else {})
