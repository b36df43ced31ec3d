"""The service's own settings, with an environment made of fresh random values."""

import os
import secrets
import tempfile

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.common import redis_urls
from gateway.processes import RANDOM
from relay.services.accepting import contention


def signing_key() -> str:
    return (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        .decode()
    )


_environment = {
    "SECRET_KEY": secrets.token_urlsafe(50),
    "ALLOWED_HOSTS": "testserver,127.0.0.1,localhost",
    "PUBLIC_URL": "http://testserver",
    # tests/conftest.py starts the server and fills in where its socket is.
    "DATABASE_URL": f"postgresql://postgres@/gateway?host={tempfile.gettempdir()}",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "CHAIN_ID": "4201",
    "CHAIN_RPC_URLS": "http://127.0.0.1:1",
    "AUTH_SIGNING_KEYS": signing_key(),
    **{name: secrets.token_urlsafe(50) for name in RANDOM},
    "LEDGER_SIGNING_KEY": signing_key(),
    "AUTH_DOMAIN": "testserver",
    "RELAY_RELAYER_KEYS": ",".join("0x" + secrets.token_hex(32) for _ in range(3)),
}
if os.environ.get("PGBOUNCER"):
    _environment["DATABASE_POOLING"] = "transaction"
# A healthy Redis may be slow; tests of its timeout set their own.
redis_urls.PATIENCE_SECONDS = 60.0
# Of a storm of requests, the last waits for all before it.
contention.RELAYER_MILLISECONDS = 60_000
for _name, _value in _environment.items():
    os.environ.setdefault(_name, _value)

from gateway.settings import *  # noqa: E402, F403
from gateway.settings import DATABASE_ROLE_LIMITS, DATABASES, LOGGING  # noqa: E402

# Tests open connections from many threads of their own; a refused one should fail at once.
DATABASES["default"]["OPTIONS"].pop("pool")
# The last of a storm waits for all before it, and a test that looks on keeps its transaction open meanwhile.
_patient = {
    "statement_timeout": "120s",
    "lock_timeout": "60s",
    "idle_in_transaction_session_timeout": "120s",
}
DATABASE_ROLE_LIMITS |= _patient
if "options" in DATABASES["default"]["OPTIONS"]:
    DATABASES["default"]["OPTIONS"]["options"] += "".join(
        f" -c {name}={limit}" for name, limit in _patient.items()
    )

# pytest keeps what a test logs; to write it as JSON as well takes longer than many a request.
LOGGING["root"] = {"level": os.environ.get("LOG_LEVEL", "INFO")}
# A storm of threads may wait for the node or the double together, and on a busy machine for each other.
WEB_THREADS = 256
STRIPE_TIMEOUT_SECONDS = CHAIN_RPC_TIMEOUT_SECONDS = 60
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CELERY_BROKER_URL = "memory://"
# Tests look at what they have just written.
STAFF_FIGURES_SECONDS = 0
# Else every test client lists all static files when it is made, which takes longer than its request.
WHITENOISE_AUTOREFRESH = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
