"""Where records are kept: PostgreSQL, and Redis for what may be lost."""

from typing import Any

from gateway.common import env

_database = env.database("DATABASE_URL")
_PLACE = {"dbname", "user", "password", "host", "port"}
_STATEMENT_SECONDS = env.integer("DATABASE_STATEMENT_TIMEOUT_SECONDS", default=15)
# A request that waits longer than this is stuck: fail it, free the row, let the caller repeat.
_TIMEOUTS = f"-c statement_timeout={_STATEMENT_SECONDS}s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s"
DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.get("dbname"),
        "USER": _database.get("user"),
        "PASSWORD": _database.get("password"),
        "HOST": _database.get("host"),
        "PORT": _database.get("port"),
        # Services own their transactions; durable=True would refuse to nest in a request's.
        "ATOMIC_REQUESTS": False,
        "OPTIONS": {
            # Other parameters of the URL, such as sslmode, go to the driver unchanged.
            **{name: text for name, text in _database.items() if name not in _PLACE},
            "options": _TIMEOUTS,
            # Only statements of gateway.common.sql are ever prepared: the ORM puts values into the text.
            "prepare_threshold": 5,
            "pool": {
                "min_size": 1,
                "max_size": env.integer("DATABASE_POOL_SIZE", default=10, minimum=1),
                "timeout": 5,
            },
        },
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss"))
CACHES: dict[str, dict[str, Any]] = {
    # For libraries, such as the theme's search in the sidebar; each process has its own.
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # JSON, because the pickles that Django writes by default can run code when read.
    "figures": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "gateway",
        "OPTIONS": {
            "serializer": "django.core.signing.JSONSerializer",
            "socket_timeout": 0.5,
            "socket_connect_timeout": 0.5,
        },
    },
}
