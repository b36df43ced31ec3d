"""Challenges: the exact text that a controller signs to sign its profile in."""

from datetime import datetime

from django.db import models
from django.utils.timezone import now

from gateway.common.fields import AddressField


class SignInChallengeQuerySet(models.QuerySet["SignInChallenge"]):
    """Challenges by what may still become of them."""

    def open(self, *, now: datetime) -> "SignInChallengeQuerySet":
        """Return those that may still be answered."""
        return self.filter(consumed_at=None, expires_at__gt=now)


class SignInChallenge(models.Model):
    """
    One message composed by the service, good for one answer.

    The text is stored as it was handed out, so that nothing is parsed or rebuilt
    when the signature comes. `client` is a keyed digest of the caller's network
    address; it narrows the search when somebody mixes two nonces up.
    """

    nonce = models.CharField(max_length=32, unique=True)
    profile_address = AddressField()
    message = models.TextField()
    client = models.CharField(max_length=64)
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
