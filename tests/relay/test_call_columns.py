"""The columns of a call are listed by its model alone; `relay_insert_calls` follows the model."""

import secrets
from typing import Any

import pytest
from django.conf import settings
from django.db.models import NOT_PROVIDED, Model
from django.utils import timezone

from credits.models import EntrySource
from credits.services import entries
from relay.models import Attempt, CreditPrice, RelayTransaction
from relay.services.accepting.calls import as_hex
from relay.services.accepting.statements import insert_calls
from tests.credits.holding import place_hold
from tests.factories import RelayerFactory, UserFactory, random_address

pytestmark = pytest.mark.django_db


def _call() -> dict[str, Any]:
    """Return what a process sends that knows none of the columns with a default."""
    user = UserFactory.create()
    relayer = RelayerFactory.create(next_account_nonce=1, synced_at=timezone.now())
    entries.grant(user=user, credits=1, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    hold = place_hold(user=user, credits=1, key=secrets.token_hex(8)).hold
    return {
        "chain_id": 4201,
        "user_id": user.pk,
        "profile_address": user.profile_address,
        "key_manager_address": random_address(),
        "controller_address": random_address(),
        "digest": "0x" + secrets.token_hex(32),
        "channel": 2**127,
        "relay_nonce": 2**255,
        "payload": as_hex(b"\x00payload"),
        "signature": as_hex(b"\x01signature"),
        "relayer_id": relayer.pk,
        "account_nonce": 7,
        "hold_id": hold.pk,
        "transaction_hash": "0x" + secrets.token_hex(32),
        "raw": as_hex(b"\x02raw"),
        "gas_limit": 21_000,
        "max_fee_per_gas_wei": 10**30,
        "max_priority_fee_per_gas_wei": 2,
        "expected_cost": 3,
        "credits_before": 4,
        "created_at": timezone.now().isoformat(),
    }


def _with_default(model: type[Model]) -> dict[str, Any]:
    values = {
        field.attname: field.default if field.db_default is NOT_PROVIDED else field.db_default
        for field in model._meta.concrete_fields
    }
    return {
        name: value for name, value in values.items() if value is not NOT_PROVIDED and not callable(value)
    }


def test_each_key_is_stored_in_the_column_of_its_name() -> None:
    sent = _call() | {"generation": 3, "quoted_cost": 9, "request_id": "of-a-request", "is_follower": True}
    insert_calls([sent])

    call, attempt = RelayTransaction.objects.get(), Attempt.objects.get()
    assert attempt.relay_transaction_id == call.pk
    for row in (call, attempt):
        for name in sent.keys() & {field.attname for field in row._meta.concrete_fields}:
            value = getattr(row, name)
            value = value.isoformat() if name == "created_at" else value
            assert (as_hex(bytes(value)) if isinstance(value, memoryview | bytes) else value) == sent[name], (
                name
            )


def test_a_key_that_is_not_sent_has_the_default_of_the_model() -> None:
    insert_calls([_call(), _call()])

    for model, fewest in ((RelayTransaction, 10), (Attempt, 5)):
        expected = _with_default(model)
        assert len(expected) >= fewest
        for row in model._default_manager.all():
            assert {name: getattr(row, name) for name in expected} == expected
    assert RelayTransaction.objects.filter(status="Pending", settled_at=None, quoted_cost=None).count() == 2
    assert Attempt.objects.filter(status="signed", block_number=None, sent_at=None).count() == 2


def test_a_call_of_a_version_without_prices_has_the_first_price_of_its_chain() -> None:
    sent = _call() | {"chain_id": settings.CHAIN_ID}
    CreditPrice.objects.create(chain_id=settings.CHAIN_ID, credit_wei=5)

    insert_calls([sent])

    assert RelayTransaction.objects.get().credit_wei == settings.CREDIT_WEI
