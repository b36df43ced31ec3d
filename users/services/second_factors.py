"""
Second factors that staff set up themselves: a phone, and recovery codes in case it is lost.

An unconfirmed device allows its owner to set it up. An approval creates it, for a new account or a reset. Its owner,
who has the password, confirms it with a code from the phone. A person without any device cannot log in.
"""

import base64
import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from gateway.staff import audit
from users.models import Phone, RecoveryCodes, User, normalised_code

_CODES, _CODE_BYTES, _GROUP = 10, 10, 4


def offer_phone(person: User) -> Phone:
    """Allow the person to set up a new phone; the current one works until the new one is confirmed."""
    Phone.objects.filter(user=person, confirmed=False).delete()
    phone: Phone = Phone.objects.create(user=person, name="phone", confirmed=False)
    return phone


def offered_phone(person: User, *, now: datetime) -> Phone | None:
    """Return the unconfirmed device that the person may still set up, or None."""
    since = now - timedelta(hours=settings.STAFF_ENROLMENT_HOURS)
    offers = Phone.objects.filter(user=person, confirmed=False, created_at__gt=since)
    phone: Phone | None = offers.first()
    return phone


def must_enrol(person: User, *, now: datetime) -> bool:
    """Return whether the person has only a password, but may set up a phone."""
    has_phone = Phone.objects.filter(user=person, confirmed=True).exists()
    return not has_phone and offered_phone(person, now=now) is not None


@transaction.atomic
def confirm_phone(person: User, *, number: str, now: datetime) -> tuple[Phone, list[str]] | None:
    """
    Confirm the offered phone as the person's only one if this is its code; return it, and new recovery codes.

    The recovery codes are returned only now. Returns None if the code is wrong or no phone is offered.
    """
    phone = prove_offered(person, number=number, now=now)
    return None if phone is None else (phone, renew_codes(person))


@transaction.atomic
def prove_offered(person: User, *, number: str, now: datetime) -> Phone | None:
    """Confirm the offered phone as the person's only one, and return it; None if this is not its code."""
    # Of two concurrent requests, the second finds no unconfirmed phone.
    offered = offered_phone(person, now=now)
    phone: Phone | None = (
        Phone.objects.select_for_update().filter(pk=offered.pk, confirmed=False).first() if offered else None
    )
    if phone is None or not phone.verify_token(number):
        return None
    Phone.objects.filter(user=person).exclude(pk=phone.pk).delete()
    phone.confirmed = True
    phone.save(update_fields=["confirmed"])
    audit.record(actor=person, row=person, action="set up a phone")
    return phone


@transaction.atomic
def renew_codes(person: User) -> list[str]:
    """Replace the person's recovery codes and return the new ones, which are shown only now."""
    codes = [_new_code() for _ in range(_CODES)]
    hashes = [hashlib.sha256(normalised_code(code).encode()).hexdigest() for code in codes]
    RecoveryCodes.objects.update_or_create(user=person, defaults={"name": "recovery codes", "hashes": hashes})
    audit.record(actor=person, row=person, action="make recovery codes")
    return codes


def reset(person: User) -> None:
    """Remove every second factor of the person, and allow them to set up a phone."""
    Phone.objects.filter(user=person).delete()
    RecoveryCodes.objects.filter(user=person).delete()
    offer_phone(person)


def proves(person: User, *, token: str) -> bool:
    """Use up a code of the person's phone, or a recovery code; return whether it was valid."""
    kind = Phone if is_number(token) else RecoveryCodes
    with transaction.atomic():
        device = kind._default_manager.select_for_update().filter(user=person, confirmed=True).first()
        return device is not None and device.verify_token(token.strip())


def is_number(token: str) -> bool:
    """Return whether the text has the form of a phone's code; recovery codes are longer."""
    return token.strip().isdigit() and len(token.strip()) <= 8


def _new_code() -> str:
    text = base64.b32encode(secrets.token_bytes(_CODE_BYTES)).decode().lower()
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))
