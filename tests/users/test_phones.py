"""The second factors of staff: sealed in the database, also those from plain text, and again under a new key."""

import secrets
from importlib import import_module
from io import StringIO

import pyotp
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from gateway.common.crypto import SealedUnderAnotherKey
from tests.database import as_owner
from tests.staff import member
from users.models import Phone

pytestmark = pytest.mark.django_db

# As django-otp made it, without the columns that have the values of all rows.
_OLD_TABLE = """
CREATE TABLE otp_totp_totpdevice (
    user_id bigint, name text, confirmed boolean, created_at timestamptz, last_used_at timestamptz, key text,
    throttling_failure_timestamp timestamptz, throttling_failure_count integer, drift integer, last_t bigint
);
GRANT ALL ON otp_totp_totpdevice TO PUBLIC
"""
_OLD_ROW = """
INSERT INTO otp_totp_totpdevice VALUES (%s, 'phone', %s, '2026-01-02T03:04Z', NULL, %s, NULL, 0, 1, %s)
"""


def stored() -> str:
    """Return all that the database has of phones."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(phone::text, ' ') FROM users_phone AS phone")
        return str(cursor.fetchone()[0])


def test_a_copy_of_the_database_has_no_seed() -> None:
    phone = Phone.objects.create(user=member("support"))
    assert len(bytes.fromhex(phone.key)) == 20
    assert not any(spelling in stored() for spelling in (phone.key, phone.key.upper(), phone.shown_key))


def test_a_number_is_used_once() -> None:
    phone = Phone.objects.create(user=member("support"))
    number = pyotp.TOTP(phone.shown_key).now()
    assert phone.verify_token(f" {number} ")
    assert not Phone.objects.get(pk=phone.pk).verify_token(number)


@pytest.mark.parametrize("number", ["", "abc", "-1", "１２"])
def test_an_invalid_phone_code_is_refused(number: str) -> None:
    phone = Phone.objects.create(user=member("support"))
    assert not phone.verify_token(number)
    assert Phone.objects.get(pk=phone.pk).throttling_failure_count == 1


def test_seeds_in_plain_text_are_sealed_by_the_migration_and_still_log_in() -> None:
    person, colleague = member("support"), member("finance")
    seeds = {one.pk: secrets.token_hex(20) for one in (person, colleague)}
    as_owner(_OLD_TABLE)
    with connection.cursor() as cursor:
        cursor.execute(_OLD_ROW, [person.pk, True, seeds[person.pk], 7])
        cursor.execute(_OLD_ROW, [colleague.pk, False, seeds[colleague.pk], -1])
        with connection.schema_editor() as editor:
            import_module("users.migrations.0006_phone").seal_seeds(apps, editor)
        cursor.execute("SELECT count(*) FROM otp_totp_totpdevice")
        assert cursor.fetchone() == (0,)
    phones = {phone.user_id: phone for phone in Phone.objects.all()}
    assert {pk: phone.key for pk, phone in phones.items()} == seeds
    assert not any(seed in stored() for seed in seeds.values())
    mine = phones[person.pk]
    assert (mine.confirmed, mine.last_step, mine.drift, mine.created_at.year) == (True, 7, 1, 2026)
    assert not phones[colleague.pk].confirmed
    assert mine.verify_token(pyotp.TOTP(mine.shown_key).now())


def test_a_database_without_that_table_is_migrated_too() -> None:
    with connection.schema_editor() as editor:
        import_module("users.migrations.0006_phone").seal_seeds(apps, editor)
    assert not Phone.objects.exists()


def test_seeds_are_sealed_again_under_a_new_key(settings: Settings) -> None:
    phone = Phone.objects.create(user=member("support"))
    seed, old, new = phone.key, settings.AD_NETWORK_SECRET_KEYS[0], secrets.token_urlsafe(40)
    settings.AD_NETWORK_SECRET_KEYS = [new, old]
    call_command("seal_network_secrets", stdout=StringIO())
    settings.AD_NETWORK_SECRET_KEYS = [new]
    assert Phone.objects.get(pk=phone.pk).key == seed
    settings.AD_NETWORK_SECRET_KEYS = [old]
    with pytest.raises(SealedUnderAnotherKey):
        _ = Phone.objects.get(pk=phone.pk).key
    with pytest.raises(CommandError, match=str(phone.user)):
        call_command("seal_network_secrets", stdout=StringIO())
