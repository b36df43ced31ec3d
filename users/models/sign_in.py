"""Sign-in challenges, sessions and refresh tokens of profiles, and the keys of the external issuer."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q

from gateway.common.fields import AddressField, ClockField


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
    # The origin of the wallet app that signed in, as the browser sent it; empty if there was none.
    origin = models.CharField(max_length=200, blank=True, default="", db_default="")
    created_at = ClockField()
    refreshed_at = ClockField()
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
    # Only whole sessions are deleted, so the database's check at commit is sufficient.
    parent = models.OneToOneField("self", null=True, on_delete=models.DO_NOTHING, related_name="child")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = ClockField()
    used_at = models.DateTimeField(null=True)
    # When the token was exchanged again because the response to its exchange was lost.
    repeated_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.token_hash[:8]}…"


class SignInChallengeQuerySet(models.QuerySet["SignInChallenge"]):
    def open(self, *, now: datetime) -> "SignInChallengeQuerySet":
        """Return the challenges that are unused and not expired."""
        return self.filter(consumed_at=None, expires_at__gt=now)


class SignInChallenge(models.Model):
    """
    One message composed by the service, valid for one response.

    The text is stored as issued, so that the service need not parse or rebuild it when
    the signature arrives. `client` is a keyed digest of the caller's network address; it
    finds the right challenge if a client confuses two nonces. `site` is a keyed digest of
    the larger network of the caller's organisation.
    """

    nonce = models.CharField(max_length=32, unique=True)
    profile_address = AddressField()
    message = models.TextField()
    client = models.CharField(max_length=64)
    site = models.CharField(max_length=64, db_default="")
    issued_at = ClockField()
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


class IssuerKeySet(models.Model):
    """The keys of the external issuer as last fetched."""

    url = models.URLField(max_length=500, unique=True)
    keys = models.JSONField()
    fetched_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.url
