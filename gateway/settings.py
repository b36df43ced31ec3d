"""
Every setting of the service. `gateway.env` reads those that an operator may change from the environment.

`docs/configuration.md` describes every variable that is read here. A variable without a default must be set. The other
settings are constants; tests and development stacks override some of them. Names end in the unit.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import django_stubs_ext
from corsheaders.defaults import default_headers
from django.core.exceptions import ImproperlyConfigured

from gateway import env, processes
from gateway.admin.theme import NAME, THEME
from gateway.chain_settings import further_chains, home_facts
from gateway.common import redis_urls
from gateway.common.logging import configure_structlog, logging_settings
from gateway.openapi import OPENAPI
from gateway.schedule import periodic_tasks
from gateway.web.brand import GROUNDS_DARK, GROUNDS_LIGHT, readable_colour

# Allows annotations such as ModelAdmin[Relayer] at run time.
django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parents[1]

# ------------ The process ------------------------------------------------------------------------------------

# If the environment has errors, the process names all of them at the end of this module, and exits.
env.collect()
# The process of compose.yaml, which decides which secrets are refused; empty if one process does everything.
_PROCESS = env.choice("GATEWAY_PROCESS", allowed=("", *processes.PROCESSES), default="")
# The secrets that must not be set for this process; no system check reports that they are missing.
WITHHELD_SECRETS = processes.withheld(_PROCESS)
SECRET_KEY = env.secret("SECRET_KEY", minimum=50)
ALLOWED_HOSTS = env.hosts("ALLOWED_HOSTS")
# The URL at which callers reach the service. With https, cookies are secure and plain http is refused.
PUBLIC_URL = env.base_url("PUBLIC_URL")
_IS_HTTPS = PUBLIC_URL.startswith("https://")
WEB_SERVES = {"web": "service", "admin": "admin"}.get(_PROCESS, "all")
ROOT_URLCONF = "gateway.urls"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "gateway.admin.formats"
APPEND_SLASH = False
# The largest body of a request, in bytes.
DATA_UPLOAD_MAX_MEMORY_SIZE = 256 * 1024
# Per web process: requests served at the same time, and requests that wait for a thread.
WEB_THREADS = env.integer("WEB_THREADS", default=32, minimum=1)
WEB_MAX_WAITING_REQUESTS = 256
# A process is unhealthy once all its threads have been busy for this long without finishing a request. Statements end
# after DATABASE_STATEMENT_TIMEOUT_SECONDS, and requests to nodes and Stripe much sooner.
WEB_STALLED_SECONDS = 60.0
# The maximum number of requests in progress, each of which may keep a body in memory. granian accepts far more
# connections: an idle one costs little, and a client that holds thousands must not block the probes.
WEB_MAX_REQUESTS = 2_048
# Requests that wait for a call's status to change. They occupy a connection and no thread.
WEB_MAX_LONG_POLLS, WEB_MAX_LONG_POLLS_PER_USER = 1000, 8
# How long a client may take to send a request's body.
WEB_BODY_SECONDS = 10
# The number of reverse proxies in front of the service whose X-Forwarded-* headers are trusted.
TRUSTED_PROXY_COUNT = env.integer("TRUSTED_PROXY_COUNT", default=0)

# ------------ Apps, middleware and templates -----------------------------------------------------------------

INSTALLED_APPS = [
    # Our app comes before the theme, and the theme before Django's admin: the first app with a template or file wins.
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
    "sponsors",
    "proofs",
    "rewards",
    "earnings",
    "relay",
    "payments",
    "checkin",
    "accounting.apps.AccountingConfig",
    "portal",
    "webhooks.apps.WebhooksConfig",
    # Last: it grants roles the permissions of all apps.
    "backoffice.apps.BackofficeConfig",
]

MIDDLEWARE = [
    "gateway.web.process.probes",
    "gateway.web.middleware.requests_logged",
    "django.middleware.security.SecurityMiddleware",
    "gateway.web.middleware.https_only",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "gateway.web.middleware.CrossOrigin",
    # After CORS, so that web pages can read the error of a refused body.
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

# The URL to which spans of relay calls are sent, and the percentage of calls that are traced.
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
if WHITENOISE_USE_FINDERS:
    MIDDLEWARE.insert(
        MIDDLEWARE.index("whitenoise.middleware.WhiteNoiseMiddleware"), "gateway.web.static.compressed"
    )
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if WHITENOISE_USE_FINDERS
        else "gateway.web.static.HashedFiles"
    },
}

# ------------ PostgreSQL and Redis ---------------------------------------------------------------------------

_PLACE = {"dbname", "user", "password", "host", "port"}
_STATEMENT_SECONDS = env.integer("DATABASE_STATEMENT_TIMEOUT_SECONDS", default=15)
# What the statements and the driver rely on, whatever is the default of the server, the database or the role.
_RELIED_ON = {
    "lock_timeout": "3s",
    "idle_in_transaction_session_timeout": "30s",
    "default_transaction_isolation": "read committed",
    "DateStyle": "ISO",
}
# Settings that `migrate` sets for the processes' role. Commands run without a statement timeout, but the role has one.
DATABASE_ROLE_LIMITS = {"statement_timeout": f"{_STATEMENT_SECONDS or 15}s", **_RELIED_ON}
# Whether a connection pooler assigns a session for each transaction; such sessions keep no state between transactions.
DATABASE_POOLING = env.choice("DATABASE_POOLING", allowed=("session", "transaction"), default="session")
_HAS_SESSIONS = DATABASE_POOLING == "session"
_LIMITS = {"statement_timeout": f"{_STATEMENT_SECONDS}s", **_RELIED_ON} if _HAS_SESSIONS else {}
# The end of a connection whose packets are not acknowledged, and probes for firewalls that forget idle connections.
_KEPT_OPEN = {
    "connect_timeout": 5,
    "keepalives_idle": 60,
    "keepalives_interval": 15,
    "keepalives_count": 4,
    "tcp_user_timeout": 10_000,
}
# One pool per database.
_OPTIONS = {
    # Only statements of gateway.common.db are ever prepared, because the ORM puts values into the statement's text.
    "prepare_threshold": 5 if _HAS_SESSIONS else None,
    "pool": {
        "min_size": 1,
        "max_size": env.integer("DATABASE_POOL_SIZE", default=10, minimum=1),
        "timeout": 5,
        # While it cannot connect, the pool uses exponential backoff. After this time it gives up, and the next
        # request starts over.
        "reconnect_timeout": 5,
    },
}


def _database_at(name: str, place: Mapping[str, str]) -> dict[str, Any]:
    with env.errors_of(name):
        if place and not place.get("dbname"):
            raise ImproperlyConfigured(f"{name} must name a database.")
        if "client_encoding" in place:
            raise ImproperlyConfigured(f"{name} must not set client_encoding, which is always UTF8.")
        if "options" in place and not _HAS_SESSIONS:
            raise ImproperlyConfigured(
                f"{name} must not set options, which a pooler drops; use ALTER ROLE ROLE SET NAME = VALUE."
            )
    # Parameters of the URL, such as sslmode, go to the driver. Its own options come last, and so take precedence.
    own = [f"-c {setting}={text}".replace(" committed", "\\ committed") for setting, text in _LIMITS.items()]
    options = [*own, place.get("options", "")]
    return {
        "ENGINE": "gateway.common.postgresql",
        "NAME": place.get("dbname"),
        "USER": place.get("user"),
        "PASSWORD": place.get("password"),
        "HOST": place.get("host"),
        "PORT": place.get("port"),
        # Services own their transactions; durable=True would refuse to nest in a request's.
        "ATOMIC_REQUESTS": False,
        "DISABLE_SERVER_SIDE_CURSORS": not _HAS_SESSIONS,
        "OPTIONS": {
            **_KEPT_OPEN,
            **{parameter: text for parameter, text in place.items() if parameter not in _PLACE},
            **({"options": " ".join(options).rstrip()} if _HAS_SESSIONS else {}),
            **_OPTIONS,
        },
    }


DATABASES: dict[str, dict[str, Any]] = {"default": _database_at("DATABASE_URL", env.database("DATABASE_URL"))}
# A standby for dashboards, histories and the pages of the admin.
if _replica := env.database("DATABASE_REPLICA_URL", default=""):
    DATABASES["replica"] = _database_at("DATABASE_REPLICA_URL", _replica)
# The database without the pooler, for the one session that waits for notifications.
DATABASE_DIRECT: dict[str, Any] = {}
if _direct := env.database("DATABASE_DIRECT_URL", default=""):
    DATABASE_DIRECT = {**_KEPT_OPEN, **_direct}
DATABASE_ROUTERS = ["gateway.common.db.Router"]
# After a change, a member of staff reads from the primary for this time, because the standby may lag.
DATABASE_REPLICA_SECONDS = 10
# Only for `migrate`, which owns the tables: the role of all other processes, to which `migrate` grants its privileges.
DATABASE_APPLICATION_ROLE = env.optional("DATABASE_APPLICATION_ROLE")
# Whether each commit must reach a standby first; `check --deploy` verifies it.
DATABASE_SYNCHRONOUS_STANDBY = env.flag("DATABASE_SYNCHRONOUS_STANDBY", default=False)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss", redis_urls.SENTINEL))
CACHES: dict[str, dict[str, Any]] = {
    # The cache of libraries, such as the theme's search in the sidebar; each process has its own cache.
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # JSON instead of Django's default, pickle, which can execute code when it is read.
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
SECURE_HSTS_SECONDS = 31_536_000 if _IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = bool(SECURE_HSTS_SECONDS)
SECURE_SSL_REDIRECT = _IS_HTTPS
# Only pages for people are redirected. An API call over plain http must fail, so that its developer notices.
SECURE_REDIRECT_EXEMPT = [r"^(?!(admin|problems|account|docs)(/|$)|$)"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXY_COUNT else None
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
# Browser wallets call from extension origins. The API uses no cookies, so any origin may be allowed.
CORS_ALLOW_ALL_ORIGINS = env.flag("CORS_ALLOW_ALL_ORIGINS", default=False)
CORS_URLS_REGEX = r"^/(api|\.well-known)/.*$"
CORS_ALLOW_HEADERS = (
    *(*default_headers, "idempotency-key", "relay-quote"),
    *("relay-sponsor", "relay-sponsor-fallback", "relay-sponsor-voucher"),
)
CORS_EXPOSE_HEADERS = ["Retry-After", "X-Request-ID"]

# ------------ The pages for people: brand and languages -------------------------------------------------------

BRAND_NAME = env.optional("BRAND_NAME", "Credit relay")
# An SVG or PNG of at most some kilobytes; empty for the product's own.
BRAND_LOGO_FILE = env.optional("BRAND_LOGO_FILE")
BRAND_COLOR = env.parsed("BRAND_COLOR", "#0f6f68", parse=partial(readable_colour, grounds=GROUNDS_LIGHT))
BRAND_COLOR_DARK = env.parsed(
    "BRAND_COLOR_DARK", "#5fd3c6", parse=partial(readable_colour, grounds=GROUNDS_DARK)
)
# An e-mail address, or the URL of a page.
BRAND_SUPPORT = env.optional("BRAND_SUPPORT")
BRAND_TERMS_URL = env.url("BRAND_TERMS_URL", default="")
BRAND_PRIVACY_URL = env.url("BRAND_PRIVACY_URL", default="")
BRAND_IMPRINT_URL = env.url("BRAND_IMPRINT_URL", default="")
# The text of the button that orders a subscription, if the law prescribes one.
BRAND_ORDER_BUTTON = env.optional("BRAND_ORDER_BUTTON")
LANGUAGE_CODE = "en"
# English is the language of the source. Each folder beside it is another language; the admin is in English.
LANGUAGES = [
    (code, code)
    for code in ("en", *sorted(found.name for found in (BASE_DIR / "portal/locale").glob("[a-z]*")))
]

# ------------ The API: how requests are read, described and limited ------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["users.api.authentication.AccessTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["users.api.authentication.IsProfileOwner"],
    "DEFAULT_PARSER_CLASSES": ["gateway.web.parsers.BoundedJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_METADATA_CLASS": "gateway.web.parsers.MethodsOnly",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "gateway.common.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "gateway.web.parsers.AlwaysJSON",
}

# The admin's process has no API, so its checks must not generate the API's description.
SPECTACULAR_SETTINGS = OPENAPI | {"ENABLE_DJANGO_DEPLOY_CHECK": WEB_SERVES != "admin"}

# Rates are per user, unless a comment names another key.
RELAY_EXECUTE_RATE = RELAY_PREPARE_RATE = env.rate("RELAY_EXECUTE_RATE", "600/minute")
RELAY_READ_RATE = "1200/minute"
DASHBOARD_RATE = "600/minute"
BILLING_RATE = CHECKIN_RATE = "60/minute"
# Setup intents and Stripe's card pages can be used to test stolen cards: limited per user and per network address.
CARD_CAPTURE_RATE = "10/day"
CARD_CAPTURE_NETWORK_RATE = env.rate("CARD_CAPTURE_NETWORK_RATE", "50/day")
# The LSP-15 paths have no token: limited by network address, by signer, and for unknown signers by profile and network.
LSP15_RATE = env.rate("LSP15_RATE", "120/minute")
LSP15_SIGNER_RATE, LSP15_NEW_SIGNER_RATE = "120/minute", "30/minute"
# These rates are per network address.
AUTH_NONCE_RATE = AUTH_VERIFY_RATE = env.rate("AUTH_RATE", "30/minute")
AUTH_REFRESH_RATE = LEDGER_ROOTS_RATE = "60/minute"
POSTBACK_RATE = "6000/minute"
# Anyone can resend a call that failed on chain, because its signature is public. After this many failures, a retry
# needs a token.
LSP15_FAILURES_PER_CALL = 2
# How long a request waits for a call's status to change.
RELAY_WAIT_SECONDS = 20

# ------------ Sign-in: our tokens, and those of an external issuer -------------------------------------------

# PEM private keys (EC P-256), one after the other: the first signs; all of them verify.
AUTH_SIGNING_KEYS = env.secret("AUTH_SIGNING_KEYS")
AUTH_REFRESH_SECRET = env.secret(
    "AUTH_REFRESH_SECRET", minimum=env.MIN_SECRET_LENGTH, other_than={"SECRET_KEY": SECRET_KEY}
)
# Secrets for other purposes must differ from these.
_OTHERS = {"SECRET_KEY": SECRET_KEY, "AUTH_REFRESH_SECRET": AUTH_REFRESH_SECRET}
AUTH_DOMAIN = env.host("AUTH_DOMAIN")
SIMPLE_JWT = {
    # The keys are those of AUTH_SIGNING_KEYS.
    "ALGORITHM": "ES256",
    "SIGNING_KEY": None,
    "ISSUER": PUBLIC_URL,
    "AUDIENCE": PUBLIC_URL,
    "ACCESS_TOKEN_LIFETIME": timedelta(seconds=env.integer("AUTH_ACCESS_SECONDS", default=600, minimum=30)),
    "USER_ID_CLAIM": "sub",
}
# How long a session lasts. Each refresh checks at a node that the controller may still sign.
AUTH_REFRESH_LIFETIME = timedelta(days=30)
# For this time after a rotation, a repeated refresh returns the same token.
AUTH_REFRESH_GRACE = timedelta(seconds=10)
AUTH_CHALLENGE_LIFETIME = timedelta(minutes=5)
AUTH_EXTERNAL_JWKS_URL = env.url("AUTH_EXTERNAL_JWKS_URL", default="")
AUTH_EXTERNAL_ISSUER = env.optional("AUTH_EXTERNAL_ISSUER")
AUTH_EXTERNAL_AUDIENCE = env.optional("AUTH_EXTERNAL_AUDIENCE")
AUTH_EXTERNAL_ADDRESS_CLAIM = env.optional("AUTH_EXTERNAL_ADDRESS_CLAIM", "address")

# ------------ The chain --------------------------------------------------------------------------------------

CHAIN_ID = env.integer("CHAIN_ID", minimum=1)
# Without duplicates: a node listed twice would vote twice in the quorum.
CHAIN_RPC_URLS = list(dict.fromkeys(env.urls("CHAIN_RPC_URLS")))
CHAIN_RPC_TIMEOUT_SECONDS = 5
CHAIN_BLOCK_SECONDS = env.integer("CHAIN_BLOCK_SECONDS", default=12, minimum=1)
# The number of nodes that must agree before credits or an account nonce change.
CHAIN_QUORUM = env.integer(
    "CHAIN_QUORUM", default=len(CHAIN_RPC_URLS) // 2 + 1, minimum=1, maximum=len(CHAIN_RPC_URLS)
)
# The IPFS gateway for names and pictures of profiles. Without it, none are shown.
IPFS_GATEWAY_URL = env.base_url("IPFS_GATEWAY_URL", default="")
# Only for development: a script with a test key that replaces the browser extension on the account page.
DEV_EXTENSION_FILE = ""
CHAIN_NAME, CHAIN_COIN, CHAIN_FAMILY = f"Chain {CHAIN_ID}", "LYX", "ethereum"
# The block explorer to which the admin links transactions; empty for no links.
EXPLORER_URL = ""
with env.errors_of("CHAIN_ID"):
    CHAIN_NAME, CHAIN_COIN, CHAIN_FAMILY, EXPLORER_URL = home_facts(CHAIN_ID)
# `open` also serves profiles with untrusted code, with a lower gas limit.
CHAIN_TRUST = env.choice("CHAIN_TRUST", allowed=("strict", "open"), default="strict")

# ------------ Credits and relaying ---------------------------------------------------------------------------

# The wei of gas that one credit pays for.
CREDIT_WEI = env.integer("CREDIT_WEI", default=10**12, minimum=1)
# The number of blocks, counted from its own, after which a transaction is settled, and after which it is final. LUKSO
# finalizes a block after two epochs of 32 slots.
CONFIRMATIONS = env.integer("CONFIRMATIONS", default=2, minimum=1)
FINALITY_BLOCKS = max(64, CONFIRMATIONS)
# Whether the node's block tag `finalized` determines finality, if the node has it.
FINALITY_TAG = env.flag("FINALITY_TAG", default=False)
# The signer, as unix:///path or https://host:port, and the folder with tls.crt, tls.key and ca.crt for https.
SIGNER_URL = env.optional("SIGNER_URL")
SIGNER_TLS_FOLDER = env.optional("SIGNER_TLS_FOLDER")
SIGNER_TIMEOUT_SECONDS = 5
with env.errors_of("SIGNER_URL"):
    if not re.fullmatch(r"(unix:///.+|https://[^/?#@]+/?)?", SIGNER_URL):
        raise ImproperlyConfigured("SIGNER_URL must be unix:///path or https://host:port.")
# Where relayer keys sign: in the signer, in this process, or not at all.
RELAY_SIGNER = "remote" if SIGNER_URL else "local"
if _PROCESS and _PROCESS not in processes.SIGNING:
    RELAY_SIGNER = "none"
# A call that has an account nonce but cannot be signed is withdrawn after this time.
RELAY_UNSIGNED_SECONDS = 120
if RELAY_SIGNER != "local":
    for _name in ("RELAY_RELAYER_KEYS", "RELAY_RELAYER_MNEMONIC", "RELAY_TREASURY_KEY"):
        env.absent(_name)
# Derives the keys of relayers that staff add later, at most RELAY_DERIVED_RELAYERS.
RELAY_RELAYER_MNEMONIC = env.secret("RELAY_RELAYER_MNEMONIC", default="")
RELAY_DERIVED_RELAYERS = 16
RELAY_RELAYER_KEYS = []
if RELAY_SIGNER == "local":
    RELAY_RELAYER_KEYS = env.secrets("RELAY_RELAYER_KEYS", default="" if RELAY_RELAYER_MNEMONIC else None)
# The account that funds relayers: its key, or only its address; the service then only watches its balance.
RELAY_TREASURY_KEY = env.secret("RELAY_TREASURY_KEY", default="")
RELAY_TREASURY_ADDRESS = env.optional("RELAY_TREASURY_ADDRESS")
# The chains besides home, by id. Their keys are secrets of this process, as those of home are.
CHAINS = further_chains(
    env.listing("CHAINS", default=()),
    home=CHAIN_ID,
    signer=RELAY_SIGNER,
    keys=tuple(RELAY_RELAYER_KEYS),
    treasury_key=RELAY_TREASURY_KEY,
)
# A relayer with less than BELOW is topped up to TO. DAILY limits the sum for all relayers in 24 hours. The signer
# computes TO in the same way.
RELAY_TOP_UP_BELOW_WEI = env.integer("RELAY_TOP_UP_BELOW_WEI", default=5 * 10**16)
RELAY_TOP_UP_TO_WEI = 4 * RELAY_TOP_UP_BELOW_WEI
RELAY_TOP_UP_DAILY_WEI = env.integer("RELAY_TOP_UP_DAILY_WEI", default=5 * 10**18)
# The maximum number of account nonces in flight per relayer. Nodes guarantee to keep 16.
RELAY_MAX_IN_FLIGHT = env.integer("RELAY_MAX_IN_FLIGHT", default=16, minimum=1)
# The maximum number of followers per channel.
RELAY_MAX_FOLLOWERS = 8
# Limits per profile: its share of the account nonces that others leave free, and the number of calls that ended without
# effect. Calls in flight count among the latter until they succeed.
RELAY_USER_SHARE_PERCENT = 50
RELAY_CANCELLED_CALLS_PER_HOUR = env.integer("RELAY_CANCELLED_CALLS_PER_HOUR", default=20, minimum=1)
RELAY_CANCELLED_CALLS_PER_DAY = 2 * RELAY_CANCELLED_CALLS_PER_HOUR
# Units of gas per call: of profiles with trusted code, and of all others. The signer has the same limits. A call never
# gets more than a quarter of the block's gas limit.
RELAY_MAX_GAS = env.integer("RELAY_MAX_GAS", default=5_000_000, minimum=21_000)
RELAY_MAX_GAS_UNTRUSTED = 500_000
# The most credits that a call may cost at its highest fees; 0 for no limit.
RELAY_MAX_CALL_CREDITS = env.integer("RELAY_MAX_CALL_CREDITS", default=0, minimum=0)
RELAY_DEPLOYMENT_MAX_GAS = env.integer("RELAY_DEPLOYMENT_MAX_GAS", default=1_500_000)
# Nodes refuse transactions above 128 KiB.
RELAY_MAX_PAYLOAD_BYTES = 32_768
# The lowest and the highest max fee per gas that the service signs.
RELAY_FEE_FLOOR_WEI = 10**9
RELAY_FEE_CAP_WEI = env.integer("RELAY_FEE_CAP_WEI", default=20 * 10**9, minimum=1)
# LUKSO's validators expect up to 1 gwei. Calls offer up to twice as much while blocks are full.
RELAY_TIP_WEI = env.integer("RELAY_TIP_WEI", default=10**9)
RELAY_TIP_CAP_WEI = 2 * RELAY_TIP_WEI
# The maximum gas, in wei, that the service may lose in an hour: for all users together, and per user.
RELAY_LOSS_PER_HOUR_WEI = env.integer("RELAY_LOSS_PER_HOUR_WEI", default=5 * 10**16)
RELAY_USER_LOSS_PER_HOUR_WEI = RELAY_LOSS_PER_HOUR_WEI // 50
# How long a quote of `prepare` is valid. A longer time increases the possible loss per quote.
RELAY_QUOTE_SECONDS = 60
# How long an accepted call waits for the chain to become cheap enough.
RELAY_DEADLINE_SECONDS = 3600
# A call that expires sooner is refused: the service would have to pay for using up its account nonce.
RELAY_MIN_VALIDITY_SECONDS = 3 * CHAIN_BLOCK_SECONDS
# When a transaction that is not mined is sent again, and when it is replaced by one with a higher fee.
RELAY_RESEND_SECONDS, RELAY_REPLACE_SECONDS = 3 * CHAIN_BLOCK_SECONDS, 5 * CHAIN_BLOCK_SECONDS
# How often the relay worker looks for a new block.
RELAY_TRACK_SECONDS = min(CHAIN_BLOCK_SECONDS, 3)
# A relay worker exits if it moves no call for this time although one is due.
RELAY_STALL_SECONDS = 120
QUOTA_WINDOW_SECONDS = 5

# Keys of the digests that recognise deleted accounts with debts: new digests use the first key, lookups use all.
DEBT_DIGEST_KEYS = env.secrets("DEBT_DIGEST_KEYS", minimum=env.MIN_SECRET_LENGTH, other_than=_OTHERS)

# ------------ Payments by Stripe -----------------------------------------------------------------------------

# Without a key, the payment endpoints return 503.
STRIPE_SECRET_KEY = env.secret("STRIPE_SECRET_KEY", default="")
# A list, so that the endpoint's secret can be rotated.
STRIPE_WEBHOOK_SECRETS = env.secrets("STRIPE_WEBHOOK_SECRETS", default="")
STRIPE_API_BASE = env.base_url("STRIPE_API_BASE", default="https://api.stripe.com")
STRIPE_TIMEOUT_SECONDS = 10
STRIPE_PRODUCT_ID = "credit-relay-subscription"
# Whether Stripe computes tax. It is included in the amount, and pays out no credits.
STRIPE_AUTOMATIC_TAX = env.flag("STRIPE_AUTOMATIC_TAX", default=False)
BILLING_CURRENCIES = env.listing("BILLING_CURRENCIES", default=("usd", "eur", "gbp", "chf"))
# The highest monthly amount, and the highest amount of a purchase.
BILLING_MAX_AMOUNT_MINOR = 1_000_000
# How long its payer can undo a purchase, for which Stripe keeps its fee; 0 for never.
PURCHASE_UNDO_MINUTES = env.integer("PURCHASE_UNDO_MINUTES", default=60, minimum=0)

# ------------ Check-ins and ad networks ----------------------------------------------------------------------

# Daily seeds derive from a secret and a salt in the database: new seeds from the first secret, old ones from any.
CHECKIN_SEED_SECRETS = env.secrets("CHECKIN_SEED_SECRETS", minimum=env.MIN_SECRET_LENGTH, other_than=_OTHERS)
# Upper limits that staff cannot exceed. A drop table's expected value is computed for this number of attempts a day.
CHECKIN_MAX_DAILY_ATTEMPTS = 5
CHECKIN_MAX_DAILY_CREDITS = env.integer("CHECKIN_MAX_DAILY_CREDITS", default=500, minimum=1)
CHECKIN_MAX_DAILY_EXPERIENCE = 5_000
ADMOB_KEYS_URL = "https://www.gstatic.com/admob/reward/verifier-keys.json"
# Encrypts the networks' secrets in the database. The first key encrypts; all keys decrypt.
AD_NETWORK_SECRET_KEYS = env.secrets(
    "AD_NETWORK_SECRET_KEYS", minimum=env.MIN_SECRET_LENGTH, other_than=_OTHERS
)

# ------------ Sponsors that people open by themselves --------------------------------------------------------

# Turning it off leaves the open ones as they are.
SPONSOR_SELF_SERVICE = env.flag("SPONSOR_SELF_SERVICE", default=True)
SPONSOR_SELF_SERVICE_PER_PROFILE = env.integer("SPONSOR_SELF_SERVICE_PER_PROFILE", default=2, minimum=1)
# Openings in 24 hours by everybody together.
SPONSOR_SELF_SERVICE_PER_DAY = env.integer("SPONSOR_SELF_SERVICE_PER_DAY", default=20, minimum=1)
# The budget of a new sponsor: the most that it pays in a UTC day and month. A larger one takes two members of staff.
SPONSOR_SELF_SERVICE_DAY_CREDITS = env.integer("SPONSOR_SELF_SERVICE_DAY_CREDITS", default=5_000, minimum=1)
SPONSOR_SELF_SERVICE_MONTH_CREDITS = env.integer(
    "SPONSOR_SELF_SERVICE_MONTH_CREDITS", default=50_000, minimum=1
)
# Every change of terms or of a signer of vouchers stores a row that stays.
SPONSOR_TERMS_RATE = "100/day"
# Requests for new profiles by one API key. One costs as much as several calls, which a higher rate would slow.
SPONSOR_CREATE_RATE = env.rate("SPONSOR_CREATE_RATE", "60/minute")
SPONSOR_REGISTRATIONS_PER_DAY = env.integer("SPONSOR_REGISTRATIONS_PER_DAY", default=1_000, minimum=0)

# ------------ Webhooks to wallet apps, and the ledger's signed roots -----------------------------------------

# Encrypts the endpoints' secrets in the same way. Without a key, staff cannot create endpoints.
WEBHOOK_SECRET_KEYS = env.secrets(
    "WEBHOOK_SECRET_KEYS", default="", minimum=env.MIN_SECRET_LENGTH, other_than=_OTHERS
)
WEBHOOK_TIMEOUT_SECONDS = 15
# Development stacks allow endpoints over plain http and on this machine.
WEBHOOK_ALLOW_HTTP = WEBHOOK_ALLOW_LOOPBACK = False
# An endpoint whose deliveries have all failed for this time is disabled.
WEBHOOK_DISABLE_DAYS = 5
# How long delivered and abandoned messages are kept; until then staff can send them again.
WEBHOOK_KEPT_DAYS = 30
# PEM: the private key (EC P-256) that signs roots, and the public keys of all roots.
LEDGER_SIGNING_KEY = env.secret("LEDGER_SIGNING_KEY", default="")
LEDGER_PUBLIC_KEYS = env.secret("LEDGER_PUBLIC_KEYS", default="")

# ------------ Workers: the broker, the queues, and how long a task may take ----------------------------------

CELERY_BEAT_SCHEDULE = periodic_tasks(with_stripe=bool(STRIPE_SECRET_KEY))
CELERY_BROKER_URL, _sentinels = REDIS_URL, dict[str, Any]()
with env.errors_of("REDIS_URL"):
    CELERY_BROKER_URL, _sentinels = redis_urls.broker(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
# No connection that senders keep idle, which a firewall may have forgotten.
CELERY_BROKER_POOL_LIMIT = 0
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# The number of tasks for which a worker process keeps its database connection (see gateway/celery.py).
CELERY_DB_REUSE_MAX = 1_000
CELERY_TASK_SOFT_TIME_LIMIT = 120
CELERY_TASK_TIME_LIMIT = 150
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker retries its connection to the broker without a limit.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 5,
    "socket_connect_timeout": 0.5,
    **redis_urls.KEPT_OPEN,
    # A worker waits for a message for a second at a time. It reconnects if Redis does not respond five seconds later.
    "health_check_interval": 5,
    "visibility_timeout": 600,
    # Messages need no retries, because periodic tasks find the work in the rows.
    "max_retries": 0,
    **_sentinels,
}
# A full reconciliation would delay calls if it ran in the relay queue. Tasks that wait for other people's
# servers come after all others; 0 is first.
CELERY_TASK_ROUTES = {
    "relay.reconcile": {"queue": "default"},
    "relay.*": {"queue": "relay"},
    "webhooks.*": {"queue": "default", "priority": 6},
    "users.refresh_profile_card": {"queue": "default", "priority": 9},
}
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_BEAT_SCHEDULER = "gateway.celery:Clock"

# ------------ Monitoring and logs ----------------------------------------------------------------------------

# Bearer tokens that may read /metrics. A list, so that a token can be rotated.
METRICS_TOKENS = env.secrets("METRICS_TOKEN", default="", minimum=env.MIN_SECRET_LENGTH)
# Workers and beat touch this file for the health check of their container.
ALIVE_FILE = env.optional("ALIVE_FILE")

DJANGO_STRUCTLOG_CELERY_ENABLED = True
_LOG_LEVEL = env.choice(
    "LOG_LEVEL", allowed=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), default="INFO"
)
LOGGING = logging_settings(_LOG_LEVEL)
configure_structlog()
# Where to report errors; empty for no reports.
SENTRY_DSN = env.secret("SENTRY_DSN", default="")

# ------------ Staff: login, sessions and the limits of one person --------------------------------------------

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
# Lockouts use the caller's address instead of the proxy's, which all callers share, and the network of an IPv6 address,
# because a caller has 2^64 addresses.
AXES_CLIENT_IP_CALLABLE = "gateway.common.http.lockout_address"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
# How long a login lasts: from its start, and from the last request.
SESSION_COOKIE_AGE = 8 * 3600
STAFF_IDLE_SECONDS = env.integer("STAFF_IDLE_MINUTES", default=30, minimum=1) * 60
# How long after approval a person without a second factor may set one up.
STAFF_ENROLMENT_HOURS = 72
# How long the figures of the front page are cached.
STAFF_FIGURES_SECONDS = 60
# The text of the admin's badge; by default the name of the chain.
STAFF_ENVIRONMENT = env.optional("STAFF_ENVIRONMENT")
UNFOLD = THEME
# Hides the keys of other people's second factors.
OTP_ADMIN_HIDE_SENSITIVE_DATA = True
# The issuer that authenticator apps show.
OTP_TOTP_ISSUER = NAME
# What staff may do in 24 hours without a second person, and the ceilings for everyone, even with approval. A bonus of
# 5 % for a week counts 35 percent-days. Refunds count in hundredths of the currency that was paid.
_CLERK_CREDITS = env.integer("APPROVAL_CREDITS_PER_CLERK", default=10_000)
_CLERK_REFUND = env.integer("APPROVAL_REFUND_PER_CLERK", default=5_000)
_CEILING_CREDITS = env.integer("CEILING_CREDITS", default=10_000_000)
_CEILING_REFUND = env.integer("CEILING_REFUND", default=500_000)
APPROVAL_LIMITS = {
    "credits": {
        "actor": _CLERK_CREDITS,
        "person": _CLERK_CREDITS,
        "day": 5 * _CLERK_CREDITS,
        "ceiling": _CEILING_CREDITS,
        "ceiling_day": 5 * _CEILING_CREDITS,
    },
    "bonuses": {"actor": 200, "person": 100, "day": 1_000, "ceiling": 3_100, "ceiling_day": 31_000},
    "refunds": {
        "actor": _CLERK_REFUND,
        "person": _CLERK_REFUND,
        "day": 5 * _CLERK_REFUND,
        "ceiling": _CEILING_REFUND,
        "ceiling_day": 5 * _CEILING_REFUND,
    },
}
# After this time a request can no longer be approved.
APPROVAL_HOURS = 72
# Receives an e-mail when a request waits for a second person.
APPROVAL_NOTICE_TO = env.listing("APPROVAL_NOTICE_TO", default=())
EMAIL_HOST = env.optional("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", default=587, minimum=1, maximum=65_535)
EMAIL_HOST_USER = env.optional("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.secret("EMAIL_HOST_PASSWORD", default="")
# Port 25 is for a mail server on the same host or network, 465 begins with TLS, and other ports use STARTTLS.
EMAIL_USE_SSL = EMAIL_PORT == 465
EMAIL_USE_TLS = EMAIL_PORT not in {25, 465}
DEFAULT_FROM_EMAIL = env.optional("EMAIL_FROM", "credit-relay-gateway@localhost")
EMAIL_TIMEOUT = 10
with env.errors_of("EMAIL_HOST"):
    if re.search(r"[/@]|^[^:]+:[0-9]+$", EMAIL_HOST):
        raise ImproperlyConfigured(
            "EMAIL_HOST must be a host name; EMAIL_PORT and EMAIL_HOST_USER are separate."
        )
    if APPROVAL_NOTICE_TO and not EMAIL_HOST:
        raise ImproperlyConfigured("APPROVAL_NOTICE_TO needs a mail server: set EMAIL_HOST.")
# Ceilings on values that staff configure: credits for 1.00 of a currency or for one unit of an ad network, the cap of a
# network's event or day, and the debt that a badge allows.
CEILING_PAYOUT_RATE = CEILING_NETWORK_RATE = env.integer("CEILING_RATE", default=100_000, minimum=1)
CEILING_NETWORK_CAP = _CEILING_CREDITS
# The credits that all ad networks may give in a UTC day, and one network's share in percent; earnings above are held.
EARNINGS_DAILY_CEILING = env.integer("EARNINGS_DAILY_CEILING", default=5_000_000, minimum=1)
EARNINGS_NETWORK_SHARE = 50
CEILING_BADGE_DEBT = 1_000_000

# Variables that are set in vain, which a start and `check --deploy` name.
UNREAD_VARIABLES = env.unread(globals()) + env.ignore_proxies()
env.finish()
