"""Workers: the broker, the queues, and how long a task may take."""

from gateway.settings.records import REDIS_URL

CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A worker process keeps its database connection for so many tasks (see gateway/celery.py).
CELERY_DB_REUSE_MAX = 1_000
CELERY_TASK_SOFT_TIME_LIMIT = 120
CELERY_TASK_TIME_LIMIT = 150
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 0.5,
    "visibility_timeout": 600,
    # A periodic task finds the row of a lost message anyway, so lose it at once rather than wait.
    "max_retries": 0,
}
# A full comparison in the relay queue would delay calls.
CELERY_TASK_ROUTES = {
    "relay.reconcile": {"queue": "default"},
    "relay.*": {"queue": "relay"},
    "*": {"queue": "default"},
}
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "gateway.beat:Clock"
