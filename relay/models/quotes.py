"""Quotes: what a relay call was promised to cost at most."""

import uuid

from django.conf import settings
from django.db import models

from gateway.common.fields import HashField, Uint256Field
from relay.models.calls import current_chain_id


class Quote(models.Model):
    """
    A promise that one relay call costs its user no more than `credits`, if it is handed in before `expires_at`.

    What the service may lose by it is reserved under `loss_key` until a call uses it, and then under that call's hold.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    chain_id = models.BigIntegerField(default=current_chain_id)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    digest = HashField()
    credits = models.BigIntegerField()
    gas_limit = models.BigIntegerField(help_text="What the call is signed with, at most.")
    max_fee_per_gas_wei = Uint256Field(help_text="The most that the reservation covers.")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="quote_by_expiry")]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def loss_key(self) -> str:
        """Under which the loss is reserved while nobody has used the quote; `relay/functions.sql` writes it too."""
        return f"quote:{self.pk}"
