"""
Encryption of secrets that the service must be able to read, such as those of ad networks.

Fernet (AES-128-CBC and HMAC-SHA256) with keys from the environment, so that a copy of the database reveals no secret.
The first key encrypts; all keys decrypt.
"""

import base64
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.models import QuerySet

_KEY_BYTES = 32


class SealedUnderAnotherKey(Exception):
    """No key decrypts the text: the right key is missing, or the text was changed."""


def seal(text: str, *, keys: Sequence[str], purpose: str) -> str:
    """Return the text encrypted with the first key for one purpose; the result differs every time."""
    return _box(tuple(keys), purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, keys: Sequence[str], purpose: str) -> str:
    """
    Return the text that was sealed for this purpose with one of the keys.

    Raises:
        SealedUnderAnotherKey: no key decrypts it.
    """
    try:
        return _box(tuple(keys), purpose).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise SealedUnderAnotherKey from error


class Resealed(NamedTuple):
    """The number of secrets sealed with the first key, and the rows with a secret that no key opens."""

    secrets: int
    unreadable: list[str]


def reseal(
    rows: QuerySet[Any],
    *,
    fields: Sequence[str] = ("current_secret", "previous_secret"),
    keys: Sequence[str],
    purpose: str,
) -> Resealed:
    """
    Seal the fields of each row with the first key, so that older keys can be removed.

    A row with a secret that no key opens is not changed.
    """
    count, unreadable = 0, []
    for pk in list(rows.order_by("pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = rows.select_for_update(no_key=True).filter(pk=pk).first()
            if row is None:
                continue  # deleted in the meantime
            try:
                count += _reseal_row(row, fields, keys, purpose)
            except SealedUnderAnotherKey:
                unreadable.append(str(row))
    return Resealed(count, unreadable)


def _reseal_row(row: Any, fields: Sequence[str], keys: Sequence[str], purpose: str) -> int:
    sealed = {name: text for name in fields if (text := getattr(row, name))}
    for name, text in sealed.items():
        setattr(row, name, seal(unseal(text, keys=keys, purpose=purpose), keys=keys, purpose=purpose))
    row.save(update_fields=list(sealed))
    return len(sealed)


@lru_cache(maxsize=16)
def _box(keys: tuple[str, ...], purpose: str) -> MultiFernet:
    if not keys:
        raise ImproperlyConfigured("This process has no encryption key.")
    return MultiFernet([Fernet(_derived(key, purpose)) for key in keys])


def _derived(key: str, purpose: str) -> bytes:
    derive = HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=purpose.encode())
    return base64.urlsafe_b64encode(derive.derive(key.encode()))
