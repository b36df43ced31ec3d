"""How members of staff log in: invitations, second factors and recovery codes."""

import hashlib
import time
from base64 import b32encode
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func, Value
from django.db.models.functions import Now
from django_otp.models import Device, ThrottlingMixin, TimestampMixin
from django_otp.oath import TOTP
from django_otp.util import random_hex

from gateway.common.crypto import Resealed, reseal, seal, unseal


class Phone(TimestampMixin, ThrottlingMixin, Device):  # type: ignore[misc]
    """
    The authenticator app of staff, and of members without a profile: six digits for each 30 seconds (RFC 6238).

    The seed is encrypted, so that a copy of the database is not enough to log in.
    """

    _PURPOSE, _SEED_BYTES, _STEP, _DIGITS, _TOLERANCE = "staff-phones", 20, 30, 6, 1

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    sealed_key = models.TextField()
    # How many time steps the phone's clock is ahead, and the step of the last code that was used.
    drift = models.SmallIntegerField(default=0)
    last_step = models.BigIntegerField(default=-1)

    class Meta:
        verbose_name = "second factor"

    @property
    def key(self) -> str:
        """Return the seed in hexadecimal."""
        return unseal(self.sealed_key, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=self._PURPOSE)

    @key.setter
    def key(self, seed: str) -> None:
        self.sealed_key = seal(seed, keys=settings.AD_NETWORK_SECRET_KEYS, purpose=self._PURPOSE)

    @property
    def shown_key(self) -> str:
        """Return the seed in the form that authenticator apps accept."""
        return b32encode(bytes.fromhex(self.key)).decode()

    @property
    def config_url(self) -> str:
        """Return the URL for the QR code."""
        return self.url_for(self.user.get_username())

    def url_for(self, label: str) -> str:
        """Return the URL for the QR code, with this label instead of the user's name."""
        values = {"secret": self.shown_key, "algorithm": "SHA1", "digits": self._DIGITS, "period": self._STEP}
        return f"otpauth://totp/{quote(label)}?{urlencode(values)}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the phone; a new phone gets a new seed."""
        if not self.sealed_key:
            self.key = random_hex(self._SEED_BYTES)
        super().save(*args, **kwargs)

    def verify_token(self, token: str) -> bool:
        """Verify and use up a code. A code is not accepted twice, and no code older than the last one is accepted."""
        if not self.verify_is_allowed()[0]:
            return False
        totp = TOTP(bytes.fromhex(self.key), self._STEP, 0, self._DIGITS, self.drift)
        totp.time = time.time()
        number = token.strip()
        if not number.isdecimal() or not totp.verify(int(number), self._TOLERANCE, self.last_step + 1):
            self.throttle_increment()
            return False
        self.last_step, self.drift = totp.t(), totp.drift
        self.throttle_reset(commit=False)
        self.set_last_used_timestamp(commit=False)
        self.save()
        return True

    def get_throttle_factor(self) -> int:
        return 1

    @classmethod
    def reseal_all(cls) -> Resealed:
        """Seal every seed under the first key, so that the other keys can be removed."""
        keys = settings.AD_NETWORK_SECRET_KEYS
        return reseal(cls.objects.all(), fields=["sealed_key"], keys=keys, purpose=cls._PURPOSE)


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def open(self, *, is_member: bool = False) -> "InvitationQuerySet":
        """Keep invitations with which staff, or members without a profile, can still choose a password."""
        return self.filter(
            used_at=None,
            expires_at__gt=Now(),
            failures__lt=Invitation.MOST_FAILURES,
            user__is_active=True,
            user__is_staff=not is_member,
            user__is_member=is_member,
        )


class Invitation(models.Model):
    """
    Lets a member of staff choose a password, once, with a link and a code.

    Two other members of staff each have one of the two, and neither can use it alone.
    """

    MOST_FAILURES: ClassVar = 5

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitation")
    # The SHA-256 of a random token; empty until the link is created.
    link_hash = models.CharField(max_length=64, blank=True, default="")
    code_hash = models.CharField(max_length=128)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    failures = models.PositiveSmallIntegerField(default=0)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    objects = InvitationQuerySet.as_manager()

    def __str__(self) -> str:
        return f"invitation of {self.user}"


class RecoveryCodes(TimestampMixin, ThrottlingMixin, Device):  # type: ignore[misc]
    """
    One-time codes that replace a lost phone at a staff login, stored as their SHA-256 only.

    A code has 80 random bits, so its hash needs no salt.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    hashes = ArrayField(models.CharField(max_length=64), default=list)

    def __str__(self) -> str:
        return f"{len(self.hashes)} recovery codes"

    def verify_token(self, token: str) -> bool:
        """Verify and use up a code; of two concurrent logins with the same code, one succeeds."""
        if not self.verify_is_allowed()[0]:
            return False
        used = hashlib.sha256(normalised_code(token).encode()).hexdigest()
        left = Func(F("hashes"), Value(used), function="array_remove")
        mine = RecoveryCodes.objects.filter(pk=self.pk, hashes__contains=[used])
        if not mine.update(hashes=left, last_used_at=Now()):
            self.throttle_increment()
            return False
        self.throttle_reset()
        return True

    def throttle_increment(self, commit: bool = True) -> None:
        # Saving the whole row could restore a code that was used in between.
        super().throttle_increment(commit=False)
        self._save_throttle()

    def throttle_reset(self, commit: bool = True) -> None:
        super().throttle_reset(commit=False)
        self._save_throttle()

    def _save_throttle(self) -> None:
        self.save(update_fields=["throttling_failure_timestamp", "throttling_failure_count"])

    def get_throttle_factor(self) -> int:
        return 1


def normalised_code(text: str) -> str:
    """Normalise a typed recovery code for hashing."""
    return text.replace("-", "").replace(" ", "").lower()
