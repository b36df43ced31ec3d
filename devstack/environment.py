"""The environment of the Django processes of a dev stack."""

import math
import os

from devstack.secrets_file import Secrets
from devstack.services import Services

CREDIT_WEI = 10**12
CREDITS_PER_MAJOR_UNIT = 1_000  # the payout rate of every currency until staff add another one
_ANY_NUMBER = "60000/minute"


def django_environment(
    services: Services, secrets: Secrets, *, port: int, block_time: float | None
) -> dict[str, str]:
    """Return the settings of a stack whose web process listens on `port`."""
    return {
        "DJANGO_SETTINGS_MODULE": "gateway.settings",
        "SECRET_KEY": secrets.django,
        "DEBUG": "False",
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "PUBLIC_URL": f"http://127.0.0.1:{port}",
        "DATABASE_URL": services.database_url,
        "REDIS_URL": services.redis_url,
        "CHAIN_ID": str(services.chain_id),
        "CHAIN_RPC_URLS": services.rpc_url,
        "CHAIN_BLOCK_SECONDS": str(max(1, math.ceil(block_time or 1))),
        "AUTH_SIGNING_KEYS": secrets.signing_key,
        "AUTH_REFRESH_SECRET": secrets.refresh,
        "AUTH_DOMAIN": f"127.0.0.1:{port}",
        "CHECKIN_SEED_SECRETS": secrets.check_in,
        "AD_NETWORK_SECRET_KEYS": secrets.ad_networks,
        "RELAY_RELAYER_KEYS": ",".join(secrets.relayer_keys),
        "CREDIT_WEI": str(CREDIT_WEI),
        "CONFIRMATIONS": "2",
        "STRIPE_SECRET_KEY": services.stripe.secret_key,
        "STRIPE_WEBHOOK_SECRETS": services.stripe.webhook_secret,
        "STRIPE_API_BASE": services.stripe.url,
        "ADMOB_KEYS_URL": services.google.url,
        "CORS_ALLOW_ALL_ORIGINS": "True",
        **_generous_limits(),
    }


def process_environment(settings: dict[str, str]) -> dict[str, str]:
    """Return this process's environment with the settings on top, for a child to run with."""
    return {**os.environ, **settings, "PYTHONUNBUFFERED": "1"}


def _generous_limits() -> dict[str, str]:
    sign_in = ("AUTH_NONCE", "AUTH_VERIFY", "AUTH_REFRESH")
    relay = ("RELAY_EXECUTE", "RELAY_READ", "LSP15", "LSP15_SIGNER", "LSP15_NEW_SIGNER")
    scopes = (*sign_in, *relay, "BILLING", "CHECKIN", "DASHBOARD")
    return {f"{scope}_RATE": _ANY_NUMBER for scope in scopes}
