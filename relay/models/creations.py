"""Profiles that sponsors asked for: new ones that the service deploys, and existing ones that it opens accounts for."""

from typing import ClassVar

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from gateway.common.fields import AddressField, HashField
from relay.models.calls import ChainIdField


class ProfileCreation(models.Model):
    """
    A sponsor's request for a profile.

    The relay transaction of `hold` deploys the profile. Without a hold, the profile existed already.
    """

    class Kind(models.TextChoices):
        """What the sponsor asked for."""

        CREATED = "created", "deploy a new profile"
        REGISTERED = "registered", "open an account for an existing profile"

    chain_id = ChainIdField()
    # No index of its own: that of `profilecreation_request` begins with the sponsor.
    sponsor = models.ForeignKey(
        "sponsors.Sponsor", models.PROTECT, related_name="profile_creations", db_index=False
    )
    # The key with which the sponsor's server asked; null for requests before this was stored.
    api_key = models.ForeignKey(
        "sponsors.ApiKey", models.PROTECT, null=True, related_name="+", db_index=False
    )
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.CREATED)
    # The hash of the request's `Idempotency-Key`, or else of its body: equal requests are one.
    request_key = HashField()
    body_hash = HashField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="profile_creations")
    # A keyed hash of the origin that the sponsor's server names, such as a person's network; empty if it names none.
    origin = models.CharField(max_length=64, blank=True, default="", db_default="")
    profile_address = AddressField()
    key_manager_address = AddressField()
    # [{"address": address, "permissions": 32 bytes in hex}]
    controllers = models.JSONField(default=list)
    hold = models.ForeignKey(
        "credits.CreditHold", models.PROTECT, null=True, related_name="profile_creations"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sponsor", "request_key"], name="profilecreation_request")
        ]
        indexes = [
            models.Index(fields=["sponsor", "profile_address"], name="profilecreation_of_profile"),
            models.Index(fields=["sponsor", "-created_at"], name="profilecreation_by_time"),
            models.Index(
                fields=["sponsor", "origin", "created_at"],
                condition=~models.Q(origin=""),
                name="profilecreation_of_origin",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            pgtrigger.ReadOnly(name="asked_for_that", fields=["sponsor", "kind", "created_at"])
        ]

    def __str__(self) -> str:
        return self.profile_address
