"""
Second factors that staff set up themselves: a phone, and recovery codes for the day when it is lost.

An unconfirmed device says that its owner may set it up. A second person's decision makes it (a new account, or a
reset); its owner, who has the password, makes it their own by a number from the phone. Somebody who has no device at
all cannot log in.
"""

import base64
import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django_otp.plugins.otp_totp.models import TOTPDevice

from gateway.staff import audit
from users.models import RecoveryCodes, User, normalised_code

_CODES, _CODE_BYTES, _GROUP = 10, 10, 4


def offer_phone(person: User) -> TOTPDevice:
    """Let the person set up a phone, and no other one; what they log in with now stays until they have."""
    TOTPDevice.objects.filter(user=person, confirmed=False).delete()
    return TOTPDevice.objects.create(user=person, name="phone", confirmed=False)


def offered_phone(person: User, *, now: datetime) -> TOTPDevice | None:
    """Return the phone that the person may set up: offered, and not too long ago."""
    since = now - timedelta(hours=settings.STAFF_ENROLMENT_HOURS)
    return TOTPDevice.objects.filter(user=person, confirmed=False, created_at__gt=since).first()


def must_enrol(person: User, *, now: datetime) -> bool:
    """Whether the person has nothing to log in with but the password, and may set up a phone."""
    has_phone = TOTPDevice.objects.filter(user=person, confirmed=True).exists()
    return not has_phone and offered_phone(person, now=now) is not None


@transaction.atomic
def confirm_phone(person: User, *, number: str, now: datetime) -> tuple[TOTPDevice, list[str]] | None:
    """
    Make the offered phone the person's only one if it shows this number; return it, and new recovery codes.

    The codes are told here and never again. None: the number is wrong, or there is no such offer.
    """
    # Of two pages at once, the second finds no offer.
    offered = offered_phone(person, now=now)
    phone = (
        TOTPDevice.objects.select_for_update().filter(pk=offered.pk, confirmed=False).first()
        if offered
        else None
    )
    if phone is None or not phone.verify_token(number):
        return None
    TOTPDevice.objects.filter(user=person).exclude(pk=phone.pk).delete()
    phone.confirmed = True
    phone.save(update_fields=["confirmed"])
    audit.record(actor=person, row=person, action="set up a phone")
    return phone, renew_codes(person)


@transaction.atomic
def renew_codes(person: User) -> list[str]:
    """Replace the person's recovery codes, and return the new ones, which nothing tells again."""
    codes = [_new_code() for _ in range(_CODES)]
    hashes = [hashlib.sha256(normalised_code(code).encode()).hexdigest() for code in codes]
    RecoveryCodes.objects.update_or_create(user=person, defaults={"name": "recovery codes", "hashes": hashes})
    audit.record(actor=person, row=person, action="make recovery codes")
    return codes


def reset(person: User) -> None:
    """Take away everything the person logs in with but the password, and let them set up a phone."""
    TOTPDevice.objects.filter(user=person).delete()
    RecoveryCodes.objects.filter(user=person).delete()
    offer_phone(person)


def proves(person: User, *, token: str) -> bool:
    """Use up a number of the person's phone, or a recovery code; return whether it was right."""
    kind = TOTPDevice if is_number(token) else RecoveryCodes
    with transaction.atomic():
        device = kind._default_manager.select_for_update().filter(user=person, confirmed=True).first()
        return device is not None and device.verify_token(token.strip())


def is_number(token: str) -> bool:
    """Whether the text is of the form that phones show; recovery codes are longer."""
    return token.strip().isdigit() and len(token.strip()) <= 8


def _new_code() -> str:
    text = base64.b32encode(secrets.token_bytes(_CODE_BYTES)).decode().lower()
    return "-".join(text[start : start + _GROUP] for start in range(0, len(text), _GROUP))
