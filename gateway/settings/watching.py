"""Monitoring: metrics, signs of life, logs."""

import structlog
from django.core.exceptions import ImproperlyConfigured

from gateway.common import env
from gateway.common.logs import refusals_are_warnings, without_path_tokens

# Whoever sends one of them may read /metrics.
METRICS_TOKENS = env.secrets("METRICS_TOKEN", default="")
if any(len(text) < env.SECRET_LETTERS for text in METRICS_TOKENS):
    raise ImproperlyConfigured(f"METRICS_TOKEN needs {env.SECRET_LETTERS} characters or more.")
# Workers and beat renew this file for the health check of their container.
ALIVE_FILE = env.optional("ALIVE_FILE")

DJANGO_STRUCTLOG_CELERY_ENABLED = True
DJANGO_STRUCTLOG_IP_LOGGING_ENABLED = False
_LOG_LEVEL = env.choice(
    "LOG_LEVEL", allowed=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), default="INFO"
)
_QUIET_LEVEL = {"DEBUG": "INFO", "INFO": "WARNING"}.get(_LOG_LEVEL, _LOG_LEVEL)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
                without_path_tokens,
            ],
            "foreign_pre_chain": [
                structlog.contextvars.merge_contextvars,
                structlog.processors.TimeStamper(fmt="iso"),
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.processors.format_exc_info,
            ],
        }
    },
    "filters": {
        "refusals_are_warnings": {"()": "django.utils.log.CallbackFilter", "callback": refusals_are_warnings}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": _LOG_LEVEL},
    # Their DEBUG lines contain access keys and client secrets, and they log two INFO lines for each request.
    "loggers": {
        **{name: {"level": _QUIET_LEVEL} for name in ("urllib3", "stripe")},
        **{
            name: {"filters": ["refusals_are_warnings"]}
            for name in (
                "django.request",
                "django_structlog.middlewares.request",
                "django.security.DisallowedHost",
                "django.security.TooManyFieldsSent",
            )
        },
    },
}
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.filter_by_level,
        structlog.processors.TimeStamper(fmt="iso"),
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
