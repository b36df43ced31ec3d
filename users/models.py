"""
Users, their sign-in sessions and refresh tokens, sign-in challenges, deletions, and trusted implementations.

A user has a Universal Profile, or is a member of staff with a password. Neither can sign in as the other.
"""

import hashlib
import time
import uuid
from base64 import b32encode
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import pgtrigger
from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import OpClass
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Lower, Now, Reverse
from django.dispatch import Signal
from django.utils.timezone import now
from django_otp.models import Device, ThrottlingMixin, TimestampMixin
from django_otp.oath import TOTP
from django_otp.util import random_hex

from gateway.common.crypto import Resealed, reseal, seal, unseal
from gateway.common.fields import AddressField, HashField
from gateway.common.models import APPEND_ONLY

# Sent with `user` inside the transaction that creates a profile's user; receivers' rows commit with it.
user_created = Signal()


class User(AbstractUser):
    """A wallet user has a profile, its address as username and no usable password; staff have no profile."""

    profile_address = AddressField(unique=True, null=True, blank=True)

    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta(AbstractUser.Meta):
        permissions = [
            ("manage_staff", "Can request staff accounts, roles and credential resets"),
            ("decide_staff", "Can decide other people's requests about staff accounts"),
        ]
        # Staff search users by the beginning or end of an address, in any casing.
        indexes = [
            models.Index(
                OpClass(Lower("profile_address"), "text_pattern_ops"), name="users_user_address_begin"
            ),
            models.Index(
                OpClass(Reverse(Lower("profile_address")), "text_pattern_ops"), name="users_user_address_end"
            ),
            # Staff are few among all users, and are searched by name.
            models.Index(fields=["username"], condition=models.Q(is_staff=True), name="users_user_staff"),
        ]

    def __str__(self) -> str:
        return self.username


class SignInSessionQuerySet(models.QuerySet["SignInSession"]):
    def active(self, *, now: datetime) -> "SignInSessionQuerySet":
        return self.filter(revoked_at=None, expires_at__gt=now)


class SignInSession(models.Model):
    """
    A family of tokens derived from one signature of one controller.

    Access tokens name the session as `sid`, so ending the row ends all of them at
    once. `expires_at` is absolute: a refresh does not extend it.
    """

    class Reason(models.TextChoices):
        SIGNED_OUT = "signed-out", "signed out"
        TOKEN_REUSED = "token-reused", "refresh token used twice"
        CONTROLLER_REVOKED = "controller-revoked", "controller lost SIGN"
        STAFF = "staff", "ended by staff"
        DELETED = "deleted", "account deleted"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="sign_in_sessions")
    controller_address = AddressField()
    # Origin of the wallet app that signed in, as sent by the browser; empty without one.
    origin = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=now)
    refreshed_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(db_index=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_reason = models.CharField(max_length=20, choices=Reason, blank=True, default="")

    objects = SignInSessionQuerySet.as_manager()

    class Meta:
        verbose_name = "sign-in session"
        permissions = [("revoke_signinsession", "Can end a session")]
        constraints = [
            models.CheckConstraint(
                condition=Q(revoked_at=None, revoked_reason="")
                | Q(revoked_at__isnull=False) & ~Q(revoked_reason=""),
                name="signinsession_revoked_with_reason",
            )
        ]

    def __str__(self) -> str:
        return f"{self.controller_address} since {self.created_at:%Y-%m-%d %H:%M}"

    def is_active(self, *, now: datetime) -> bool:
        return self.revoked_at is None and now < self.expires_at


class RefreshToken(models.Model):
    """
    A one-time token, stored as its SHA-256 only.

    `parent` is unique: even under concurrency, a token has at most one child.
    """

    session = models.ForeignKey(SignInSession, on_delete=models.CASCADE, related_name="refresh_tokens")
    # Only whole sessions are deleted, so the database's check at commit suffices.
    parent = models.OneToOneField("self", null=True, on_delete=models.DO_NOTHING, related_name="child")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=now)
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.token_hash[:8]}…"


class SignInChallengeQuerySet(models.QuerySet["SignInChallenge"]):
    def open(self, *, now: datetime) -> "SignInChallengeQuerySet":
        """Return the challenges that are unused and not expired."""
        return self.filter(consumed_at=None, expires_at__gt=now)


class SignInChallenge(models.Model):
    """
    One message composed by the service, valid for one answer.

    The text is stored as issued, so that nothing is parsed or rebuilt when the
    signature arrives. `client` is a keyed digest of the caller's network address; it
    finds the right challenge when a client confuses two nonces. `site` is one of the
    organisation's network around it.
    """

    nonce = models.CharField(max_length=32, unique=True)
    profile_address = AddressField()
    message = models.TextField()
    client = models.CharField(max_length=64)
    site = models.CharField(max_length=64, db_default="")
    issued_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(db_index=True)
    consumed_at = models.DateTimeField(null=True)

    objects = SignInChallengeQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["profile_address", "-issued_at"], name="signinchallenge_newest_of"),
            models.Index(fields=["client", "-issued_at"], name="signinchallenge_newest_by"),
        ]

    def __str__(self) -> str:
        return f"{self.profile_address} at {self.issued_at:%Y-%m-%d %H:%M:%S}"


class AccountDeletion(models.Model):
    """
    A request to delete an account, and its progress (`services.deletion`).

    The user's row stays, because accounting rows reference it; its personal data is removed.
    """

    class Status(models.TextChoices):
        REQUESTED = "requested", "Requested: subscription and customer at Stripe are being deleted"
        BILLING_ENDED = "billing-ended", "Deleted at Stripe; erased once all calls have ended"
        ERASED = "erased", "Erased"

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.PROTECT, related_name="deletion")
    status = models.CharField(max_length=16, choices=Status, default=Status.REQUESTED)
    waits_for = models.CharField(
        max_length=200, blank=True, default="", help_text="What it waited for at the last attempt."
    )
    requested_at = models.DateTimeField()
    billing_ended_at = models.DateTimeField(null=True)
    erased_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["requested_at"], condition=~Q(status="erased"), name="accountdeletion_unfinished"
            )
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="requested", billing_ended_at=None, erased_at=None)
                | Q(status="billing-ended", billing_ended_at__isnull=False, erased_at=None)
                | Q(status="erased", billing_ended_at__isnull=False, erased_at__isnull=False),
                name="accountdeletion_status_fits_times",
            )
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Trigger(
                name="erased_by_the_owner",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert | pgtrigger.Update,
                condition=pgtrigger.Q(new__status="erased"),
                declare=[("owner", "oid")],
                func="""
                    SELECT relowner INTO owner FROM pg_class WHERE oid = TG_RELID;
                    IF NOT pg_has_role(current_user, owner, 'USAGE') THEN
                        RAISE insufficient_privilege USING MESSAGE = 'only the owner of the tables erases an account';
                    END IF;
                    RETURN NEW;
                """,
            )
        ]

    def __str__(self) -> str:
        return f"deletion of user {self.user_id}"


class ProfileCard(models.Model):
    """A profile's name and picture (LSP-3), as last read; empty without them."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="card")
    name = models.CharField(max_length=80, blank=True, default="")
    # A small picture with verified type and size, so that no browser fetches the original.
    picture = models.BinaryField(default=bytes)
    picture_type = models.CharField(max_length=10, blank=True, default="")
    refreshed_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(OpClass(Lower("name"), "text_pattern_ops"), name="profilecard_name_begin"),
        ]

    def __str__(self) -> str:
        return self.name or f"user {self.user_id}"


class IssuerKeySet(models.Model):
    """The keys of the external issuer as last fetched."""

    url = models.URLField(max_length=500, unique=True)
    keys = models.JSONField()
    fetched_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.url


class Note(models.Model):
    """A note by staff about a person: never changed, and erased with the account."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="notes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ("add", "view")
        ordering = ("-pk",)
        constraints = [models.CheckConstraint(condition=~Q(text=""), name="note_has_text")]
        # By this name the application role may neither change nor delete rows; the owner of the tables erases them.
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.Protect(name=APPEND_ONLY.name, operation=pgtrigger.Update)
        ]

    def __str__(self) -> str:
        return f"note {self.pk}"


class Phone(TimestampMixin, ThrottlingMixin, Device):  # type: ignore[misc]
    """
    A member of staff's authenticator app: six digits for each 30 seconds (RFC 6238).

    The seed is sealed, so that a copy of the database is not enough to log in.
    """

    _PURPOSE, _SEED_BYTES, _STEP, _DIGITS, _TOLERANCE = "staff-phones", 20, 30, 6, 1

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    sealed_key = models.TextField()
    # How many steps the phone's clock is ahead, and the step of the last number that was used.
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
        """Return the seed as authenticator apps take it."""
        return b32encode(bytes.fromhex(self.key)).decode()

    @property
    def config_url(self) -> str:
        """Return what the QR code contains."""
        values = {"secret": self.shown_key, "algorithm": "SHA1", "digits": self._DIGITS, "period": self._STEP}
        return f"otpauth://totp/{quote(self.user.get_username())}?{urlencode(values)}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Give a new phone a new seed."""
        if not self.sealed_key:
            self.key = random_hex(self._SEED_BYTES)
        super().save(*args, **kwargs)

    def verify_token(self, token: str) -> bool:
        """Use up the number; none is accepted twice, nor one from before the last."""
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
    def open(self) -> "InvitationQuerySet":
        """Return those that still let a person choose a password."""
        return self.filter(
            used_at=None,
            expires_at__gt=Now(),
            failures__lt=Invitation.MOST_FAILURES,
            user__is_active=True,
            user__is_staff=True,
        )


class Invitation(models.Model):
    """
    Lets a member of staff choose a password, once, with a link and a code.

    Another member of staff has each of the two, and neither can log in as the person with one of them.
    """

    MOST_FAILURES: ClassVar = 5

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="invitation")
    # SHA-256 of a random token; empty until the link is made.
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
        """Use up the code; of two concurrent logins with the same code, one succeeds."""
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
        # Saving the whole row would restore a code that was used in between.
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


class TrustedImplementation(models.Model):
    """
    Trusted code of a profile or a key manager.

    Minimal proxies (EIP-1167) are identified by the `address` they delegate to,
    other contracts by the `code_hash` of their runtime code.
    """

    class Kind(models.TextChoices):
        PROFILE = "profile"
        KEY_MANAGER = "key-manager"

    kind = models.CharField(max_length=12, choices=Kind)
    name = models.CharField(max_length=80, help_text="Name of the release, shown to staff.")
    address = AddressField(null=True, blank=True)
    code_hash = HashField(null=True, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [
            ("decide_trustedimplementation", "Can decide other people's requests about trusted code")
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(address__isnull=False, code_hash__isnull=True)
                | Q(address__isnull=True, code_hash__isnull=False),
                name="trustedimplementation_address_or_hash",
            ),
            models.UniqueConstraint(fields=["kind", "address"], name="trustedimplementation_kind_address"),
            models.UniqueConstraint(
                fields=["kind", "code_hash"], name="trustedimplementation_kind_code_hash"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Refuse in the form what a database constraint would refuse."""
        if bool(self.address) == bool(self.code_hash):
            raise ValidationError(
                "Enter either the address that proxies delegate to, or the hash of the deployed code."
            )
