"""Sessions, opened by a sign-in, and the one-time tokens that carry them on."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.timezone import now

from gateway.common.fields import AddressField


class SignInSessionQuerySet(models.QuerySet["SignInSession"]):
    """Sessions by whether they still count."""

    def living(self, *, now: datetime) -> "SignInSessionQuerySet":
        """Return those that have neither been revoked nor expired."""
        return self.filter(revoked_at=None, expires_at__gt=now)


class SignInSession(models.Model):
    """
    A family of tokens that stem from one signature of one controller.

    Access tokens name the session as `sid`, so ending the row ends all of them at
    once. `expires_at` is absolute: no refresh moves it.
    """

    class Reason(models.TextChoices):
        """Why a session ended before its time."""

        SIGNED_OUT = "signed-out", "signed out"
        TOKEN_REUSED = "token-reused", "refresh token used twice"
        CONTROLLER_REVOKED = "controller-revoked", "controller lost SIGN"
        STAFF = "staff", "ended by staff"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_sessions"
    )
    controller_address = AddressField()
    created_at = models.DateTimeField(default=now)
    refreshed_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(db_index=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_reason = models.CharField(max_length=20, choices=Reason, blank=True, default="")

    objects = SignInSessionQuerySet.as_manager()

    class Meta:
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

    def is_living(self, *, now: datetime) -> bool:
        """Return whether the session has neither been revoked nor expired."""
        return self.revoked_at is None and now < self.expires_at


class RefreshToken(models.Model):
    """
    A one-time token, known by its SHA-256 alone.

    `parent` is unique: whatever happens at once, a token has at most one child.
    """

    session = models.ForeignKey(SignInSession, on_delete=models.CASCADE, related_name="refresh_tokens")
    # Whole sessions are deleted, never single tokens, so the database's own check at commit is enough.
    parent = models.OneToOneField("self", null=True, on_delete=models.DO_NOTHING, related_name="child")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=now)
    used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.token_hash[:8]}…"
