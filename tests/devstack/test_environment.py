"""The settings a stack hands to the service: complete, random, kept."""

import stat
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from eth_account import Account

from devstack.environment import django_environment, keep_secrets
from devstack.services.stack import Services


def test_secrets_are_made_once_and_only_their_owner_may_read_them(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    made = keep_secrets(path)
    assert keep_secrets(path) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_two_stacks_share_a_secret(tmp_path: Path) -> None:
    one, other = keep_secrets(tmp_path / "one.json"), keep_secrets(tmp_path / "other.json")
    assert one.django != other.django
    assert one.refresh != other.refresh
    assert one.signing_key != other.signing_key
    assert one.staff.password != other.staff.password
    assert one.staff.totp_secret != other.staff.totp_secret
    assert set(one.relayer_keys).isdisjoint(other.relayer_keys)


def test_the_environment_names_the_running_services(services: Services, tmp_path: Path) -> None:
    secrets = keep_secrets(tmp_path / "secrets.json")
    environment = django_environment(services, secrets, port=8123, block_time=0.2)
    assert (environment["PUBLIC_URL"], environment["AUTH_DOMAIN"]) == (
        "http://127.0.0.1:8123",
        "127.0.0.1:8123",
    )
    assert (environment["DATABASE_URL"], environment["REDIS_URL"]) == (
        services.application_database_url,
        services.redis_url,
    )
    assert (environment["CHAIN_ID"], environment["CHAIN_RPC_URLS"]) == ("4201", services.rpc_url)
    assert environment["CHAIN_BLOCK_SECONDS"] == "1"
    assert (environment["STRIPE_API_BASE"], environment["STRIPE_SECRET_KEY"]) == (
        services.stripe.url,
        services.stripe.secret_key,
    )
    assert (
        environment["STRIPE_WEBHOOK_SECRETS"] == services.stripe.webhook_secret != services.stripe.secret_key
    )


def test_the_keys_are_usable_and_there_are_four_relayers_or_more(services: Services, tmp_path: Path) -> None:
    secrets = keep_secrets(tmp_path / "secrets.json")
    environment = django_environment(services, secrets, port=1, block_time=12)
    key = load_pem_private_key(environment["AUTH_SIGNING_KEYS"].encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    assert isinstance(key.curve, SECP256R1)
    addresses = [Account.from_key(text).address for text in environment["RELAY_RELAYER_KEYS"].split(",")]
    assert addresses == secrets.relayer_addresses
    assert len(set(addresses)) >= 4
