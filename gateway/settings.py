"""
Every setting of the service, once. Values come from the environment through `gateway.common.env`.

The sections are those of `docs/configuration.md`, which gives the form, default and meaning of every variable.
A variable without a default must be set. Names end in their unit; where they do not, a comment names it.
"""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import django_stubs_ext
import structlog
from celery.schedules import crontab
from corsheaders.defaults import default_headers
from django.core.exceptions import ImproperlyConfigured

from gateway.admin.theme import NAME, THEME
from gateway.common import env, redis_urls
from gateway.common.logging import expected_errors_are_warnings, json_formatter

# Allows annotations such as ModelAdmin[Relayer] at run time.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parents[1]

# ------------ The process ------------------------------------------------------------------------------------

SECRET_KEY = env.secret("SECRET_KEY")
DEBUG = env.flag("DEBUG", default=False)
ALLOWED_HOSTS = env.listing("ALLOWED_HOSTS")
# Where callers reach the service; https switches on everything that depends on it.
PUBLIC_URL = env.base_url("PUBLIC_URL")
_IS_HTTPS = PUBLIC_URL.startswith("https://")
# What this web process answers; the admin may run as a process of its own, with a host name and secrets of its own.
WEB_SERVES = env.choice("WEB_SERVES", allowed=("all", "service", "admin"), default="all")
ROOT_URLCONF = "gateway.urls"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = "gateway.admin.formats"
APPEND_SLASH = False
# Bytes of a request's body.
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
# Of each web process: requests that are answered at the same time, and those that wait for one of its threads.
# A thread mostly waits: for the node, for PostgreSQL, or for a turn that it shares with others.
WEB_THREADS = env.integer("WEB_THREADS", default=32, minimum=1)
WEB_MAX_WAITING_REQUESTS = env.integer("WEB_MAX_WAITING_REQUESTS", default=256)
# Requests that wait for a change: they take no thread, but each occupies a connection.
WEB_MAX_LONG_POLLS = env.integer("WEB_MAX_LONG_POLLS", default=1000)
WEB_MAX_LONG_POLLS_PER_USER = env.integer("WEB_MAX_LONG_POLLS_PER_USER", default=8)
# Seconds in which a request's body must arrive.
WEB_BODY_SECONDS = env.integer("WEB_BODY_SECONDS", default=10, minimum=1)
# Reverse proxies in front of the service, whose X-Forwarded-* headers are trusted.
TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", default=0)

# ------------ Apps, middleware and templates -----------------------------------------------------------------

INSTALLED_APPS = [
    # Before the theme, and the theme before Django's admin: the first app that has a template or static file wins.
    "gateway.common.apps.GatewayCommonConfig",
    "gateway.admin.apps.GatewayAdminConfig",
    "gateway.staff.apps.StaffConfig",
    "unfold.apps.BasicAppConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "axes",
    "corsheaders",
    "csp",
    "django_structlog",
    "pgtrigger",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "backoffice.apps.SecondFactorAdminConfig",
    "users",
    "credits",
    "proofs",
    "rewards",
    "earnings",
    "relay",
    "payments",
    "checkin",
    "portal",
    "backoffice.apps.BackofficeConfig",
    "webhooks.apps.WebhooksConfig",
]

MIDDLEWARE = [
    "gateway.web.process.probes",
    "gateway.web.middleware.requests_logged",
    "django.middleware.security.SecurityMiddleware",
    "gateway.web.middleware.https_only",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "gateway.web.middleware.CrossOrigin",
    # After CORS, so that a web page may read why its body was refused.
    "gateway.web.middleware.unread_bodies",
    "gateway.web.middleware.SessionsOfPages",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "gateway.web.middleware.UsersOfPages",
    "django_otp.middleware.OTPMiddleware",
    "gateway.web.middleware.MessagesOfPages",
    "gateway.admin.middleware.staff_sessions",
    "gateway.admin.middleware.replica_reads",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "gateway.web.middleware.PolicyOfPages",
    "gateway.admin.middleware.policies",
    "axes.middleware.AxesMiddleware",
]

# Spans of relay calls go there, https://collector:4318/v1/traces, of so many calls in a hundred; empty for none.
TRACING_OTLP_URL = env.url("TRACING_OTLP_URL", default="")
TRACING_PERCENT = env.integer("TRACING_PERCENT", default=100, minimum=1, maximum=100)
if TRACING_OTLP_URL:
    MIDDLEWARE.insert(1, "gateway.web.middleware.requests_traced")

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "static"
# The image has collected, hashed and compressed the static files; a bare checkout serves the packages' own folders.
WHITENOISE_USE_FINDERS = not STATIC_ROOT.is_dir()
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if WHITENOISE_USE_FINDERS
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# ------------ PostgreSQL and Redis ---------------------------------------------------------------------------

_PLACE = {"dbname", "user", "password", "host", "port"}
_STATEMENT_SECONDS = env.integer("DATABASE_STATEMENT_TIMEOUT_SECONDS", default=15)
# A request that waits longer than this is stuck: fail it, free the row, let the caller repeat.
_LOCK_SECONDS = env.integer("DATABASE_LOCK_TIMEOUT_SECONDS", default=10, minimum=1)
_TIMEOUTS = {"lock_timeout": f"{_LOCK_SECONDS}s", "idle_in_transaction_session_timeout": "30s"}
# What `migrate` sets for the role of the processes; commands, which have no limit of their own, run as others do.
DATABASE_ROLE_LIMITS = {"statement_timeout": f"{_STATEMENT_SECONDS or 15}s", **_TIMEOUTS}
# A pooler in front gives a session for as long as a connection lasts, or for one transaction: then nothing may be set
# for a session, or kept in it.
DATABASE_POOLING = env.choice("DATABASE_POOLING", allowed=("session", "transaction"), default="session")
_HAS_SESSIONS = DATABASE_POOLING == "session"
_LIMITS = {"statement_timeout": f"{_STATEMENT_SECONDS}s", **_TIMEOUTS} if _HAS_SESSIONS else {}
# Past the pooler, for the one session that waits for notifications.
DATABASE_DIRECT_URL = env.secret("DATABASE_DIRECT_URL", default="")
_PREPARES = env.flag("DATABASE_PREPARED_STATEMENTS", default=_HAS_SESSIONS)
# One pool for each database; the parameters of its URL that are no place, such as sslmode, go to the driver unchanged.
_OPTIONS = {
    **({"options": " ".join(f"-c {name}={limit}" for name, limit in _LIMITS.items())} if _LIMITS else {}),
    # Only statements of gateway.common.db are ever prepared: the ORM puts values into the text.
    "prepare_threshold": 5 if _PREPARES else None,
    "pool": {
        "min_size": 1,
        "max_size": env.integer("DATABASE_POOL_SIZE", default=10, minimum=1),
        "timeout": 5,
    },
}


def _database_at(place: Mapping[str, str]) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": place.get("dbname"),
        "USER": place.get("user"),
        "PASSWORD": place.get("password"),
        "HOST": place.get("host"),
        "PORT": place.get("port"),
        # Services own their transactions; durable=True would refuse to nest in a request's.
        "ATOMIC_REQUESTS": False,
        "DISABLE_SERVER_SIDE_CURSORS": not _HAS_SESSIONS,
        "OPTIONS": {**{name: text for name, text in place.items() if name not in _PLACE}, **_OPTIONS},
    }


DATABASES: dict[str, dict[str, Any]] = {"default": _database_at(env.database("DATABASE_URL"))}
# A standby for dashboards, histories and the pages of the admin.
if _replica := env.database("DATABASE_REPLICA_URL", default=""):
    DATABASES["replica"] = _database_at(_replica)
DATABASE_ROUTERS = ["gateway.common.replicas.Router"]
# After a change, a member of staff reads from the primary for so long: the standby may not have it yet.
DATABASE_REPLICA_SECONDS = env.integer("DATABASE_REPLICA_SECONDS", default=10, minimum=1)
# Set where `migrate` runs, as the owner of the tables: the role as which all other processes connect.
DATABASE_APPLICATION_ROLE = env.optional("DATABASE_APPLICATION_ROLE")
# Whether a commit must be on another machine as well; `check --deploy` looks whether it is.
DATABASE_SYNCHRONOUS_STANDBY = env.flag("DATABASE_SYNCHRONOUS_STANDBY", default=False)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss", redis_urls.SENTINEL))
CACHES: dict[str, dict[str, Any]] = {
    # For libraries, such as the theme's search in the sidebar; each process has its own.
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # JSON, because the pickles that Django writes by default can run code when read.
    "figures": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        # A list, because a text is split at commas.
        "LOCATION": [REDIS_URL],
        "KEY_PREFIX": "gateway",
        "OPTIONS": {
            "serializer": "django.core.signing.JSONSerializer",
            "pool_class": "gateway.common.redis_urls.Pool",
            **redis_urls.patience(),
        },
    },
}

# ------------ Browsers: https, cookies, framing, content policy, origins -------------------------------------

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _IS_HTTPS
SESSION_COOKIE_HTTPONLY = True
SECURE_HSTS_SECONDS = 31_536_000 if _IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = bool(SECURE_HSTS_SECONDS)
SECURE_SSL_REDIRECT = _IS_HTTPS
# Only pages for people are redirected. An API call over plain http must fail, so that its sender notices.
SECURE_REDIRECT_EXEMPT = [r"^(?!(admin|problems|account)(/|$)|$)"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXY_COUNT else None
X_FRAME_OPTIONS = "DENY"
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "gateway.admin.error_pages.csrf_failed"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "worker-src": ["'self'", "blob:"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
        "object-src": ["'none'"],
    }
}

CORS_ALLOWED_ORIGINS = env.listing("CORS_ALLOWED_ORIGINS", default=())
# Browser wallets call from extension origins; the API knows no cookies, so any origin may be allowed.
CORS_ALLOW_ALL_ORIGINS = env.flag("CORS_ALLOW_ALL_ORIGINS", default=False)
CORS_URLS_REGEX = r"^/(api|\.well-known)/.*$"
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_HEADERS = (*default_headers, "idempotency-key", "relay-quote")
CORS_EXPOSE_HEADERS = ["Retry-After", "X-Request-ID"]

# ------------ The API: how requests are read, described and limited ------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["users.api.authentication.AccessTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["users.api.authentication.IsProfileOwner"],
    "DEFAULT_PARSER_CLASSES": ["gateway.common.parsers.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_METADATA_CLASS": "gateway.common.parsers.MethodsOnly",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "gateway.common.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "gateway.common.parsers.AlwaysJSON",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Credit relay gateway",
    "DESCRIPTION": (BASE_DIR / "gateway/description.md").read_text(encoding="utf-8"),
    "VERSION": "1.0.0",
    "SERVERS": [{"url": "/", "description": "The service that this document comes from."}],
    "TAGS": [
        {"name": "sign-in", "description": "Sessions and tokens of a profile."},
        {"name": "relay", "description": "Relay calls, their status, and the quota."},
        {"name": "user", "description": "Dashboard, histories, check-ins and ad networks."},
        {"name": "payments", "description": "The monthly subscription by card."},
        {"name": "ledger", "description": "Signed roots over all entries, and proofs of the own ones."},
        {"name": "LSP-15 wallets", "description": "Paths for wallets that speak LSP-15 and send no token."},
        {"name": "ad networks", "description": "Where ad networks report earnings."},
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": r"/api",
    "OAS_VERSION": "3.1.0",
    "ENUM_NAME_OVERRIDES": {
        "StatusEnum": "relay.models.RelayStatus",
        "SubscriptionStatusEnum": "payments.models.Subscription.Status",
    },
    "PREPROCESSING_HOOKS": ["gateway.docs.paths_as_documented"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "gateway.docs.ready_for_generators",
    ],
}

RELAY_EXECUTE_RATE = env.rate("RELAY_EXECUTE_RATE", "600/minute")
RELAY_PREPARE_RATE = env.rate("RELAY_PREPARE_RATE", "600/minute")
# Callers of the LSP-15 paths have no token: counted by network address, then by signer.
LSP15_RATE = env.rate("LSP15_RATE", "120/minute")
LSP15_SIGNER_RATE = env.rate("LSP15_SIGNER_RATE", "120/minute")
LSP15_NEW_SIGNER_RATE = env.rate("LSP15_NEW_SIGNER_RATE", "30/minute")
# The signature of a call that failed on chain is public: after so many failures, repeating it takes a token.
LSP15_FAILURES_PER_CALL = env.integer("LSP15_FAILURES_PER_CALL", default=2, minimum=1)
DASHBOARD_RATE = env.rate("DASHBOARD_RATE", "600/minute")
# How long a request may wait for a call's status to change. Proxies between here and the client must wait longer.
RELAY_WAIT_SECONDS = env.integer("RELAY_WAIT_SECONDS", default=20, minimum=1, maximum=30)
RELAY_READ_RATE = env.rate("RELAY_READ_RATE", "1200/minute")

# ------------ Sign-in: our tokens, and those of an external issuer -------------------------------------------

# PEM private keys (EC P-256), one after the other: the first signs; all of them verify.
AUTH_SIGNING_KEYS = env.secret("AUTH_SIGNING_KEYS")
AUTH_REFRESH_SECRET = env.secret("AUTH_REFRESH_SECRET")
AUTH_DOMAIN = env.required("AUTH_DOMAIN")
SIMPLE_JWT = {
    # The keys are those of AUTH_SIGNING_KEYS.
    "ALGORITHM": "ES256",
    "SIGNING_KEY": None,
    "ISSUER": env.optional("AUTH_ISSUER", PUBLIC_URL),
    "AUDIENCE": env.optional("AUTH_AUDIENCE", PUBLIC_URL),
    "ACCESS_TOKEN_LIFETIME": timedelta(seconds=env.integer("AUTH_ACCESS_SECONDS", default=600, minimum=30)),
    "USER_ID_CLAIM": "sub",
}
AUTH_REFRESH_LIFETIME = timedelta(days=env.integer("AUTH_REFRESH_DAYS", default=30, minimum=1))
# Within this time after a rotation, a repeated refresh gets the same token again.
AUTH_REFRESH_GRACE = timedelta(seconds=10)
AUTH_CHALLENGE_LIFETIME = timedelta(minutes=5)
AUTH_EXTERNAL_JWKS_URL = env.url("AUTH_EXTERNAL_JWKS_URL", default="")
AUTH_EXTERNAL_ISSUER = env.optional("AUTH_EXTERNAL_ISSUER")
AUTH_EXTERNAL_AUDIENCE = env.optional("AUTH_EXTERNAL_AUDIENCE")
AUTH_EXTERNAL_ALGORITHMS = env.listing("AUTH_EXTERNAL_ALGORITHMS", default=("ES256", "RS256"))
AUTH_EXTERNAL_ADDRESS_CLAIM = env.optional("AUTH_EXTERNAL_ADDRESS_CLAIM", "address")

AUTH_NONCE_RATE = env.rate("AUTH_NONCE_RATE", "30/minute")
AUTH_VERIFY_RATE = env.rate("AUTH_VERIFY_RATE", "30/minute")
AUTH_REFRESH_RATE = env.rate("AUTH_REFRESH_RATE", "60/minute")

# ------------ The chain --------------------------------------------------------------------------------------

CHAIN_ID = env.integer("CHAIN_ID", minimum=1)
# A node that is named twice would count twice.
CHAIN_RPC_URLS = list(dict.fromkeys(env.urls("CHAIN_RPC_URLS")))
CHAIN_RPC_TIMEOUT_SECONDS = env.integer("CHAIN_RPC_TIMEOUT_SECONDS", default=5, minimum=1)
CHAIN_BLOCK_SECONDS = env.integer("CHAIN_BLOCK_SECONDS", default=12, minimum=1)
# How many nodes must say the same before money or an account nonce moves.
CHAIN_QUORUM = env.integer(
    "CHAIN_QUORUM", default=len(CHAIN_RPC_URLS) // 2 + 1, minimum=1, maximum=len(CHAIN_RPC_URLS)
)
# A node whose newest block is older than this, or so far behind the others, is not asked; 0 is any age.
CHAIN_MAX_HEAD_AGE_SECONDS = env.integer(
    "CHAIN_MAX_HEAD_AGE_SECONDS", default=max(60, 10 * CHAIN_BLOCK_SECONDS), minimum=0
)
CHAIN_MAX_LAG_BLOCKS = env.integer("CHAIN_MAX_LAG_BLOCKS", default=5, minimum=1)
# Where pictures of profiles that lie on IPFS are read; without it, no name and no picture is.
IPFS_GATEWAY_URL = env.base_url("IPFS_GATEWAY_URL", default="")
# A script with a test key that the dev stack puts into the account holder's page; it asks the node from there.
DEV_EXTENSION_FILE = env.optional("DEV_EXTENSION_FILE")
if DEV_EXTENSION_FILE:
    env.require_local("DEV_EXTENSION_FILE", PUBLIC_URL)
    CONTENT_SECURITY_POLICY["DIRECTIVES"]["connect-src"] = ["'self'", *CHAIN_RPC_URLS]
# Where the admin links transactions to; empty for no links.
EXPLORER_URL = env.base_url(
    "EXPLORER_URL",
    default={42: "https://explorer.lukso.network", 4201: "https://explorer.testnet.lukso.network"}.get(
        CHAIN_ID, ""
    ),
)
# `open` also serves profiles whose code nobody has vetted, with a lower gas cap.
CHAIN_TRUST = env.choice("CHAIN_TRUST", allowed=("strict", "open"), default="strict")

# ------------ Credits and relaying ---------------------------------------------------------------------------

# Wei of gas that one credit pays for.
CREDIT_WEI = env.integer("CREDIT_WEI", default=10**12, minimum=1)
# Blocks from a transaction's own on, its own included, with which it is settled, and with which it is final.
CONFIRMATIONS = env.integer("CONFIRMATIONS", default=2, minimum=1)
FINALITY_BLOCKS = env.integer("FINALITY_BLOCKS", default=64, minimum=CONFIRMATIONS)
# Final is what the node's tag `finalized` says, where the node knows it.
FINALITY_TAG = env.flag("FINALITY_TAG", default=False)
# Who signs: this process, a signer elsewhere, or nobody. Without `local` it refuses to start with a key.
RELAY_SIGNER = env.choice("RELAY_SIGNER", allowed=("local", "remote", "none"), default="local")
# Where the signer listens, unix:///path or https://host:port, how long it may take, and the files of mutual TLS.
SIGNER_URL = env.optional("SIGNER_URL")
SIGNER_TIMEOUT_SECONDS = env.integer("SIGNER_TIMEOUT_SECONDS", default=5, minimum=1)
SIGNER_TLS_CERTIFICATE = env.optional("SIGNER_TLS_CERTIFICATE")
SIGNER_TLS_KEY = env.optional("SIGNER_TLS_KEY")
SIGNER_TLS_AUTHORITY = env.optional("SIGNER_TLS_AUTHORITY")
if RELAY_SIGNER == "remote" and not SIGNER_URL.startswith(("unix:///", "https://")):
    raise ImproperlyConfigured("With RELAY_SIGNER=remote, SIGNER_URL is unix:///path or https://host:port.")
# A call that has its account nonce and cannot be signed for so long is given up.
RELAY_UNSIGNED_SECONDS = env.integer("RELAY_UNSIGNED_SECONDS", default=120, minimum=10)
if RELAY_SIGNER != "local":
    env.absent("RELAY_RELAYER_KEYS")
    env.absent("RELAY_RELAYER_MNEMONIC")
    env.absent("RELAY_TREASURY_KEY")
# The words from which the keys of relayers come that staff add later, and how many there can be of them.
RELAY_RELAYER_MNEMONIC = env.secret("RELAY_RELAYER_MNEMONIC", default="")
RELAY_DERIVED_RELAYERS = env.integer("RELAY_DERIVED_RELAYERS", default=16, minimum=1, maximum=256)
RELAY_RELAYER_KEYS = (
    env.secrets("RELAY_RELAYER_KEYS", default="" if RELAY_RELAYER_MNEMONIC else None)
    if RELAY_SIGNER == "local"
    else []
)
# The account that funds relayers: its key, which the relay worker alone has, or its address, which is only watched.
RELAY_TREASURY_KEY = env.secret("RELAY_TREASURY_KEY", default="")
RELAY_TREASURY_ADDRESS = env.optional("RELAY_TREASURY_ADDRESS")
# Wei: a relayer with less gets as much as it lacks to the second figure; and the most for all in 24 hours.
RELAY_TOP_UP_BELOW_WEI = env.integer("RELAY_TOP_UP_BELOW_WEI", default=5 * 10**16)
RELAY_TOP_UP_TO_WEI = env.integer("RELAY_TOP_UP_TO_WEI", default=2 * 10**17, minimum=1)
RELAY_TOP_UP_DAILY_WEI = env.integer("RELAY_TOP_UP_DAILY_WEI", default=5 * 10**18)
# Account nonces of one relayer that are taken and not mined.
RELAY_MAX_IN_FLIGHT = env.integer("RELAY_MAX_IN_FLIGHT", default=16, minimum=1)
# Calls of one channel that wait for the one before them.
RELAY_MAX_FOLLOWERS = env.integer("RELAY_MAX_FOLLOWERS", default=8)
# Limits for one profile: its share of the account nonces that others leave free; and calls that ended without effect,
# those in flight included.
RELAY_USER_SHARE_PERCENT = env.integer("RELAY_USER_SHARE_PERCENT", default=50, minimum=1, maximum=100)
RELAY_CANCELLED_CALLS_PER_HOUR = env.integer("RELAY_CANCELLED_CALLS_PER_HOUR", default=20, minimum=1)
RELAY_CANCELLED_CALLS_PER_DAY = env.integer("RELAY_CANCELLED_CALLS_PER_DAY", default=40, minimum=1)
# Units of gas for one call: of a profile whose code is trusted, and of any other.
RELAY_MAX_GAS = env.integer("RELAY_MAX_GAS", default=3_000_000, minimum=21_000)
RELAY_MAX_GAS_UNTRUSTED = env.integer("RELAY_MAX_GAS_UNTRUSTED", default=500_000, minimum=21_000)
RELAY_MAX_PAYLOAD_BYTES = env.integer("RELAY_MAX_PAYLOAD_BYTES", default=32_768, minimum=4)
RELAY_FEE_FLOOR_WEI = env.integer("RELAY_FEE_FLOOR_WEI", default=10**9)
RELAY_FEE_CAP_WEI = env.integer("RELAY_FEE_CAP_WEI", default=20 * 10**9, minimum=1)
# LUKSO's validators want up to a gwei.
RELAY_TIP_WEI = env.integer("RELAY_TIP_WEI", default=10**9)
RELAY_TIP_CAP_WEI = env.integer("RELAY_TIP_CAP_WEI", default=2 * 10**9, minimum=1)
# The most gas, in wei, that the service may lose within an hour: through all users together, and through each.
RELAY_LOSS_PER_HOUR_WEI = env.integer("RELAY_LOSS_PER_HOUR_WEI", default=5 * 10**16)
RELAY_USER_LOSS_PER_HOUR_WEI = env.integer("RELAY_USER_LOSS_PER_HOUR_WEI", default=10**15)
# How long a quote of `prepare` is good; what the service may lose by it grows with that.
RELAY_QUOTE_SECONDS = env.integer("RELAY_QUOTE_SECONDS", default=60, minimum=5, maximum=60)
# How long an accepted call waits for the chain to become cheap enough.
RELAY_DEADLINE_SECONDS = env.integer("RELAY_DEADLINE_SECONDS", default=3600, minimum=60)
# With less time an accepted call would expire unsent, and the service would pay for its account nonce.
RELAY_MIN_VALIDITY_SECONDS = env.integer(
    "RELAY_MIN_VALIDITY_SECONDS", default=3 * CHAIN_BLOCK_SECONDS, minimum=2 * CHAIN_BLOCK_SECONDS
)
RELAY_RESEND_SECONDS = env.integer("RELAY_RESEND_SECONDS", default=3 * CHAIN_BLOCK_SECONDS, minimum=1)
RELAY_REPLACE_SECONDS = env.integer("RELAY_REPLACE_SECONDS", default=5 * CHAIN_BLOCK_SECONDS, minimum=1)
RELAY_TRACK_SECONDS = env.integer("RELAY_TRACK_SECONDS", default=min(CHAIN_BLOCK_SECONDS, 3), minimum=1)
# A relay worker that moves nothing for so long although something is due is ended.
RELAY_STALL_SECONDS = env.integer("RELAY_STALL_SECONDS", default=120, minimum=10)
QUOTA_WINDOW_SECONDS = 5

# ------------ Payments by Stripe -----------------------------------------------------------------------------

# Without a key the payment paths answer 503 and everything else works.
STRIPE_SECRET_KEY = env.secret("STRIPE_SECRET_KEY", default="")
# Two while the endpoint's secret is being rotated.
STRIPE_WEBHOOK_SECRETS = env.secrets("STRIPE_WEBHOOK_SECRETS", default="")
STRIPE_API_BASE = env.base_url("STRIPE_API_BASE", default="https://api.stripe.com")
STRIPE_TIMEOUT_SECONDS = env.integer("STRIPE_TIMEOUT_SECONDS", default=10, minimum=1)
STRIPE_PRODUCT_ID = env.optional("STRIPE_PRODUCT_ID", "credit-relay-subscription")
# Tax is part of the amount, and pays out no credits.
STRIPE_AUTOMATIC_TAX = env.flag("STRIPE_AUTOMATIC_TAX", default=False)
BILLING_CURRENCIES = env.listing("BILLING_CURRENCIES", default=("usd", "eur", "gbp", "chf"))
BILLING_MAX_AMOUNT_MINOR = env.integer("BILLING_MAX_AMOUNT_MINOR", default=1_000_000, minimum=100)
BILLING_RATE = env.rate("BILLING_RATE", "60/minute")

# ------------ Check-ins --------------------------------------------------------------------------------------

# Make the daily seeds, together with a salt in the database. The first makes new seeds; all are tried for old ones.
CHECKIN_SEED_SECRETS = env.secrets("CHECKIN_SEED_SECRETS")
CHECKIN_RATE = env.rate("CHECKIN_RATE", "60/minute")
# A limit whatever the badges add up to: staff edit badges, and drop tables are weighed by this number.
CHECKIN_MAX_DAILY_ATTEMPTS = env.integer("CHECKIN_MAX_DAILY_ATTEMPTS", default=5, minimum=1)
# The most a drop table may give a user in a day, as an expected value; staff cannot publish a richer one.
CHECKIN_MAX_DAILY_CREDITS = env.integer("CHECKIN_MAX_DAILY_CREDITS", default=500, minimum=1)
CHECKIN_MAX_DAILY_EXPERIENCE = env.integer("CHECKIN_MAX_DAILY_EXPERIENCE", default=5_000, minimum=1)

# ------------ Ad networks ------------------------------------------------------------------------------------

ADMOB_KEYS_URL = env.url("ADMOB_KEYS_URL", default="https://www.gstatic.com/admob/reward/verifier-keys.json")
POSTBACK_RATE = env.rate("POSTBACK_RATE", "6000/minute")
# How long postbacks without a credit are kept. Networks repeat for nine days.
POSTBACK_KEPT_DAYS = env.integer("POSTBACK_KEPT_DAYS", default=400, minimum=30)
# Encrypt the networks' secrets in the database. The first key encrypts; all of them decrypt.
AD_NETWORK_SECRET_KEYS = env.secrets("AD_NETWORK_SECRET_KEYS")

# ------------ Webhooks to wallet apps ------------------------------------------------------------------------

# Encrypt the endpoints' secrets in the database. The first key encrypts; all of them decrypt. Without one there are
# no endpoints.
WEBHOOK_SECRET_KEYS = env.secrets("WEBHOOK_SECRET_KEYS", default="")
WEBHOOK_TIMEOUT_SECONDS = env.integer("WEBHOOK_TIMEOUT_SECONDS", default=15, minimum=1, maximum=30)
# For development: endpoints with plain http, and on this machine.
WEBHOOK_ALLOW_HTTP = env.flag("WEBHOOK_ALLOW_HTTP", default=False)
WEBHOOK_ALLOW_LOOPBACK = env.flag("WEBHOOK_ALLOW_LOOPBACK", default=False)
# An endpoint that has refused everything for so long is disabled.
WEBHOOK_DISABLE_DAYS = env.integer("WEBHOOK_DISABLE_DAYS", default=5, minimum=1)
# How long messages that were delivered or given up are kept; until then they can be sent again.
WEBHOOK_KEPT_DAYS = env.integer("WEBHOOK_KEPT_DAYS", default=30, minimum=7)

# ------------ The ledger's signed roots ----------------------------------------------------------------------

# A PEM private key (EC P-256), which the worker that closes roots alone has; and the PEM public keys of all roots.
LEDGER_SIGNING_KEY = env.secret("LEDGER_SIGNING_KEY", default="")
LEDGER_PUBLIC_KEYS = env.secret("LEDGER_PUBLIC_KEYS", default="")
LEDGER_ROOTS_RATE = env.rate("LEDGER_ROOTS_RATE", "60/minute")

# ------------ Periodic tasks ---------------------------------------------------------------------------------

CELERY_BEAT_SCHEDULE: dict[str, Any] = {
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
    "earnings-purge": {"task": "earnings.purge", "schedule": crontab(hour="2", minute="50")},
    "rewards-purge": {"task": "rewards.purge", "schedule": crontab(hour="2", minute="55")},
    "credits-roots": {"task": "credits.close_roots", "schedule": 600, "options": {"expires": 600}},
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
    "webhooks-purge": {"task": "webhooks.purge", "schedule": crontab(hour="2", minute="45")},
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

# ------------ Workers: the broker, the queues, and how long a task may take ----------------------------------

CELERY_BROKER_URL, _sentinels = redis_urls.broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# A worker process keeps its database connection for so many tasks (see gateway/celery.py).
CELERY_DB_REUSE_MAX = 1_000
CELERY_TASK_SOFT_TIME_LIMIT = 120
CELERY_TASK_TIME_LIMIT = 150
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# However long the broker is away, a worker waits for it.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 0.5,
    "visibility_timeout": 600,
    # A periodic task finds the row of a lost message anyway, so lose it at once rather than wait.
    "max_retries": 0,
    **_sentinels,
}
# A full comparison in the relay queue would delay calls.
CELERY_TASK_ROUTES = {
    "relay.reconcile": {"queue": "default"},
    "relay.*": {"queue": "relay"},
}
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "gateway.celery:Clock"

# ------------ Monitoring and logs ----------------------------------------------------------------------------

# Requests with one of these as Bearer token may read /metrics; two while one is being replaced.
METRICS_TOKENS = env.secrets("METRICS_TOKEN", default="")
if any(len(text) < env.MIN_SECRET_LENGTH for text in METRICS_TOKENS):
    raise ImproperlyConfigured(f"METRICS_TOKEN needs {env.MIN_SECRET_LENGTH} characters or more.")
# Workers and beat renew this file for the health check of their container.
ALIVE_FILE = env.optional("ALIVE_FILE")

DJANGO_STRUCTLOG_CELERY_ENABLED = True
_LOG_LEVEL = env.choice(
    "LOG_LEVEL", allowed=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), default="INFO"
)
_QUIET_LEVEL = {"DEBUG": "INFO", "INFO": "WARNING"}.get(_LOG_LEVEL, _LOG_LEVEL)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": json_formatter}},
    "filters": {
        "expected_errors_are_warnings": {
            "()": "django.utils.log.CallbackFilter",
            "callback": expected_errors_are_warnings,
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": _LOG_LEVEL},
    # Their DEBUG lines contain access keys and client secrets, and they log two INFO lines for each request.
    "loggers": {
        **{name: {"level": _QUIET_LEVEL} for name in ("urllib3", "stripe")},
        **{
            name: {"filters": ["expected_errors_are_warnings"]}
            for name in (
                "django.request",
                "gateway.requests",
                "django.security.DisallowedHost",
                "django.security.TooManyFieldsSent",
            )
        },
    },
}
# Where errors are reported, as Sentry gives it; empty for nowhere.
SENTRY_DSN = env.secret("SENTRY_DSN", default="")
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

# ------------ Staff: how they log in, for how long, and what one of them may do alone ------------------------

AUTH_USER_MODEL = "users.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
AXES_VERBOSE = False
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_CALLABLE = "gateway.admin.error_pages.locked_out"
# Behind a proxy, do not lock a name for everybody because of the proxy's address.
AXES_CLIENT_IP_CALLABLE = "gateway.common.http.client_ip_or_none"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
# How long a login lasts: seconds since it began, and since the last request.
SESSION_COOKIE_AGE = env.integer("STAFF_SESSION_HOURS", default=8, minimum=1) * 3600
STAFF_IDLE_SECONDS = env.integer("STAFF_IDLE_MINUTES", default=30, minimum=1) * 60
# So many hours after a second person has agreed, somebody without a second factor may set one up.
STAFF_ENROLMENT_HOURS = env.integer("STAFF_ENROLMENT_HOURS", default=72, minimum=1)
# Seconds for which the front page's figures are cached.
STAFF_FIGURES_SECONDS = env.integer("STAFF_FIGURES_SECONDS", default=60)
# The text of the admin's badge; by default the name of the chain.
STAFF_ENVIRONMENT = env.optional("STAFF_ENVIRONMENT")
UNFOLD = THEME
# Nobody may read the key of somebody else's second factor.
OTP_ADMIN_HIDE_SENSITIVE_DATA = True
# What an authenticator app calls the account.
OTP_TOTP_ISSUER = NAME
# What staff may do in 24 hours without a second person, and what nobody may do; a bonus of 5 % for a week is 35
# percent-days.
APPROVAL_LIMITS = {
    "credits": {
        "actor": env.integer("APPROVAL_CREDITS_PER_CLERK", default=10_000),
        "person": env.integer("APPROVAL_CREDITS_PER_PERSON", default=10_000),
        "day": env.integer("APPROVAL_CREDITS_PER_DAY", default=50_000),
        "ceiling": env.integer("CEILING_CREDITS", default=10_000_000),
        "ceiling_day": env.integer("CEILING_CREDITS_PER_DAY", default=50_000_000),
    },
    "bonuses": {
        "actor": env.integer("APPROVAL_BONUS_PER_CLERK", default=200),
        "person": env.integer("APPROVAL_BONUS_PER_PERSON", default=100),
        "day": env.integer("APPROVAL_BONUS_PER_DAY", default=1_000),
        "ceiling": env.integer("CEILING_BONUS", default=3_100),
        "ceiling_day": env.integer("CEILING_BONUS_PER_DAY", default=31_000),
    },
    # Money in hundredths of whatever currency it was paid in.
    "refunds": {
        "actor": env.integer("APPROVAL_REFUND_PER_CLERK", default=5_000),
        "person": env.integer("APPROVAL_REFUND_PER_PERSON", default=5_000),
        "day": env.integer("APPROVAL_REFUND_PER_DAY", default=25_000),
        "ceiling": env.integer("CEILING_REFUND", default=500_000),
        "ceiling_day": env.integer("CEILING_REFUND_PER_DAY", default=2_500_000),
    },
}
# After this many hours a request can no longer be approved.
APPROVAL_HOURS = env.integer("APPROVAL_HOURS", default=72, minimum=1)
# Who is told by e-mail that a request waits for a second person; nobody, where this or the mail server is not set.
APPROVAL_NOTICE_TO = env.listing("APPROVAL_NOTICE_TO", default=())
EMAIL_HOST = env.optional("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", default=587, minimum=1, maximum=65_535)
EMAIL_HOST_USER = env.optional("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.secret("EMAIL_HOST_PASSWORD", default="")
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS", default=True)
DEFAULT_FROM_EMAIL = env.optional("EMAIL_FROM", "credit-relay-gateway@localhost")
EMAIL_TIMEOUT = 10
if APPROVAL_NOTICE_TO and not EMAIL_HOST:
    raise ImproperlyConfigured("APPROVAL_NOTICE_TO needs a mail server: set EMAIL_HOST.")
# Prices that nobody may set: credits for 1.00 of a currency.
CEILING_PAYOUT_RATE = env.integer("CEILING_PAYOUT_RATE", default=100_000, minimum=1)
# Credits per unit of an ad network, and the caps of its events and days.
CEILING_NETWORK_RATE = env.integer("CEILING_NETWORK_RATE", default=100_000, minimum=1)
CEILING_NETWORK_CAP = env.integer("CEILING_NETWORK_CAP", default=10_000_000, minimum=1)
# Each bonus of a badge in percent, and the credits that it lets people owe.
CEILING_BADGE_PERCENT = env.integer("CEILING_BADGE_PERCENT", default=100, minimum=1)
CEILING_BADGE_DEBT = env.integer("CEILING_BADGE_DEBT", default=1_000_000)
