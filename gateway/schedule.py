"""The periodic tasks that beat sends. A number is an interval in seconds."""

from typing import Any

from celery.schedules import crontab

Schedule = dict[str, dict[str, Any]]

# Workers drop messages of interval tasks that are older than this, so that an outage leaves few behind. Celery compares
# the clocks of two hosts for this, so the time is longer than clocks may differ.
_EXPIRES_SECONDS = 600

_TASKS: Schedule = {
    "payments-events": {"task": "payments.process_due_events", "schedule": 10},
    "payments-operations": {"task": "payments.resume_operations", "schedule": 60},
    "payments-top-up": {"task": "payments.top_up", "schedule": 20},
    "payments-catch-up": {"task": "payments.catch_up", "schedule": 3600},
    "accounting-months": {"task": "accounting.prepare_months", "schedule": 60},
    "checkin-seeds": {"task": "checkin.keep_seeds", "schedule": 600},
    # These run at fixed times, because a restart of beat would restart a daily interval.
    "payments-subscriptions": {
        "task": "payments.refresh_subscriptions",
        "schedule": crontab(hour="2", minute="20"),
    },
    "earnings-purge": {"task": "earnings.purge", "schedule": crontab(hour="2", minute="50")},
    "rewards-purge": {"task": "rewards.purge", "schedule": crontab(hour="2", minute="55")},
    "proofs-roots": {"task": "proofs.close_roots", "schedule": 600},
    "credits-expiry": {"task": "credits.expire", "schedule": crontab(hour="1", minute="40")},
    "credits-debts": {"task": "credits.keep_debts", "schedule": 60},
    "proofs-audit": {"task": "proofs.audit_roots", "schedule": crontab(hour="3", minute="55")},
    "credits-reconcile": {"task": "credits.reconcile", "schedule": crontab(hour="3", minute="10")},
    "credits-causes": {"task": "credits.compare_causes", "schedule": crontab(hour="3", minute="15")},
    "relay-reconcile": {"task": "relay.reconcile", "schedule": crontab(hour="3", minute="25")},
    "earnings-release": {"task": "earnings.release", "schedule": 60},
    "earnings-verifier-keys": {"task": "earnings.refresh_verifier_keys", "schedule": 900},
    "users-deletions": {"task": "users.end_billing_of_deleted", "schedule": 60},
    "webhooks-collect": {"task": "webhooks.collect", "schedule": 5},
    "webhooks-deliver": {"task": "webhooks.deliver", "schedule": 5},
    "webhooks-notices": {"task": "webhooks.send_notices", "schedule": 30},
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
    """Return beat's schedule; it has the nightly tasks of Stripe only with `with_stripe`."""
    tasks = _TASKS | (_OF_STRIPE if with_stripe else {})
    return {name: task | _options(task["schedule"]) for name, task in tasks.items()}


def _options(schedule: int | crontab) -> dict[str, Any]:
    if not isinstance(schedule, int):
        return {}
    return {"options": {"expires": max(schedule, _EXPIRES_SECONDS)}}
