"""When beat sends which task."""

from typing import Any

from celery.schedules import crontab

from gateway.settings.payments import STRIPE_SECRET_KEY
from gateway.settings.relay import RELAY_TRACK_SECONDS

CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    "relay-track": {
        "task": "relay.track",
        "schedule": RELAY_TRACK_SECONDS,
        # A tick that has waited for several periods has nothing left to do.
        "options": {"expires": 4 * RELAY_TRACK_SECONDS},
    },
    "relay-sweep": {"task": "relay.sweep", "schedule": RELAY_TRACK_SECONDS, "options": {"expires": 30}},
    "payments-events": {
        "task": "payments.process_due_events",
        "schedule": 10,
        "options": {"expires": 30},
    },
    "payments-operations": {"task": "payments.resume_operations", "schedule": 60, "options": {"expires": 60}},
    "payments-catch-up": {"task": "payments.catch_up", "schedule": 3600},
    "checkin-seeds": {"task": "checkin.keep_seeds", "schedule": 600, "options": {"expires": 600}},
    # At fixed times: an interval of a day would start over whenever beat restarts.
    "payments-subscriptions": {
        "task": "payments.refresh_subscriptions",
        "schedule": crontab(hour="2", minute="20"),
    },
    "credits-purge": {"task": "credits.purge", "schedule": crontab(hour="2", minute="50")},
    "credits-audit": {"task": "credits.audit", "schedule": crontab(hour="3", minute="10")},
    "relay-reconcile": {"task": "relay.reconcile", "schedule": crontab(hour="3", minute="25")},
    "credits-release": {"task": "credits.release_earnings", "schedule": 60, "options": {"expires": 60}},
    "credits-verifier-keys": {"task": "credits.refresh_verifier_keys", "schedule": 900},
    "users-purge": {"task": "users.purge", "schedule": 3600},
    "users-issuer-keys": {"task": "users.refresh_issuer_keys", "schedule": 300},
}

if STRIPE_SECRET_KEY:
    # Before the comparison, which reports whatever could not be caught up.
    CELERY_BEAT_SCHEDULE["payments-money-back"] = {
        "task": "payments.claw_back",
        "schedule": crontab(hour="3", minute="0"),
    }
    CELERY_BEAT_SCHEDULE["payments-reconcile"] = {
        "task": "payments.reconcile",
        "schedule": crontab(hour="3", minute="40"),
    }
