"""`check --deploy` asks other servers at the same time, and waits for none that is away."""

import secrets
import socket
from collections.abc import Iterator

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from gateway.chain.client import JsonRpcChainClient, set_chain_client
from gateway.common import checks, db
from payments.stripe import set_billing_client
from tests.database import as_owner
from tests.factories import UserFactory


@pytest.fixture
def silent(settings: Settings) -> Iterator[None]:
    """Nodes and Stripe that accept connections and never respond, with timeouts far above those of the check."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE = f"sk_test_{secrets.token_hex()}", url
        set_billing_client(None)
        set_chain_client(JsonRpcChainClient([url], timeout_seconds=600))
        yield
    set_chain_client(None)
    set_billing_client(None)


@pytest.mark.usefixtures("silent")
def test_every_silent_server_is_named_after_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "OTHERS_SECONDS", 0.5)

    assert {(message.id, message.msg) for message in checks.other_servers()} == {
        ("relay.W001", "No node in CHAIN_RPC_URLS responds."),
        ("payments.W002", "Stripe's settings could not be read: Stripe is silent."),
    }


@pytest.mark.django_db
def test_no_check_queries_a_database_that_is_away(
    monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    place = secrets.token_hex(8)
    monkeypatch.setattr(db, "connection_error", lambda alias: f"{alias} at {place} does not respond")

    with django_assert_num_queries(0):
        found = checks.database()

    assert [(message.id, message.msg) for message in found] == [
        ("gateway.W001", f"default at {place} does not respond")
    ]


@pytest.mark.django_db
def test_sequences_behind_their_ids_are_reported() -> None:
    assert checks.sequences_are_ahead() == []
    user = UserFactory.create()
    try:
        as_owner("SELECT setval(pg_get_serial_sequence('users_user', 'id'), 1, false)")
        (error,) = checks.sequences_are_ahead()
    finally:
        # A rollback does not restore a sequence.
        as_owner(f"SELECT setval(pg_get_serial_sequence('users_user', 'id'), {user.pk})")

    assert error.id == "gateway.E002"
    assert error.msg.endswith(": users_user.")
