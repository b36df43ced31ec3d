"""The relay worker's state: runs of its loops, the final block, quotes, and losses."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from gateway.common.fields import HashField, Uint256Field
from relay.models.calls import ChainIdField


class WorkerLoop(models.Model):
    """A loop of the relay worker: when it last finished a run, last succeeded, and last advanced a call."""

    chain_id = ChainIdField()
    name = models.CharField(max_length=32)
    ended_at = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain_id", "name"], name="workerloop_name")]

    def __str__(self) -> str:
        return self.name


class FinalBlock(models.Model):
    """
    The newest final block. Every call settled up to it was compared with the chain.

    If a block above it disappears, the calls that were settled in that block are reopened. If
    the final block itself disappears, the tracker stops until an operator decides.
    """

    chain_id = ChainIdField(unique=True)
    number = models.BigIntegerField()
    block_hash = models.CharField(max_length=66)
    replaced_at = models.DateTimeField(
        null=True, help_text="Since when the chain has had another block at this height."
    )

    def __str__(self) -> str:
        return f"block {self.number}"


class Quote(models.Model):
    """
    A promise that one relay call costs its user at most `credits`, if it is submitted before `expires_at`.

    The service's possible loss is reserved under `loss_key` until a call uses the quote, then under that call's hold.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    chain_id = ChainIdField()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+", db_index=False)
    digest = HashField()
    credits = models.BigIntegerField()
    credit_wei = Uint256Field(null=True, help_text="The wei of a credit that the quote and its call use.")
    gas_limit = models.BigIntegerField(help_text="The highest gas limit that the quote covers.")
    max_fee_per_gas_wei = Uint256Field(help_text="The highest fee that the loss reservation covers.")
    max_extra_fee_wei = Uint256Field(
        db_default=0, help_text="The most besides gas that the loss reservation covers."
    )
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    sponsor_version = models.ForeignKey(
        "sponsors.PolicyVersion",
        models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        help_text="The version of a sponsor's policy that pays.",
    )

    class Meta:
        indexes = [models.Index(fields=["expires_at"], name="quote_by_expiry")]

    def __str__(self) -> str:
        return str(self.pk)

    @property
    def loss_key(self) -> str:
        """The key of the loss reservation until a call uses the quote; `relay/functions.sql` writes it too."""
        return f"quote:{self.pk}"


class Loss(models.Model):
    """
    Gas that the service pays, or may have to pay, instead of a user.

    The database transaction that signs reserves the highest possible cost; confirmation corrects it to the actual cost.
    """

    class Kind(models.TextChoices):
        """The cause of a loss."""

        REPLACEMENT = "replacement", "replacement that costs more than the hold"
        CANCELLATION = "cancellation", "self-transfer that cancels a call"
        UNTRUSTED = "untrusted", "call of untrusted code"
        GAP = "gap", "self-transfer that fills a gap"
        QUOTE = "quote", "quote"
        EXTRA_FEE = "extra-fee", "fee besides gas above the hold"
        OVERTAKEN = "overtaken", "deployment of a profile that somebody else deployed first"

    chain_id = ChainIdField()
    # For a call, the key of its hold.
    key = models.CharField(max_length=255, help_text="Idempotency key, which names the cause.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="losses", null=True)
    kind = models.CharField(max_length=16, choices=Kind)
    reserved_wei = Uint256Field()
    lost_wei = Uint256Field(null=True)
    reserved_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "losses"
        constraints = [
            models.UniqueConstraint(fields=["chain_id", "key"], name="loss_key"),
            models.CheckConstraint(
                condition=Q(lost_wei__isnull=True, settled_at__isnull=True)
                | Q(lost_wei__isnull=False, settled_at__isnull=False),
                name="loss_settled_whole",
            ),
        ]
        indexes = [
            models.Index(fields=["chain_id", "settled_at"], name="loss_by_time"),
            models.Index(fields=["chain_id"], condition=Q(settled_at__isnull=True), name="loss_in_flight"),
        ]

    def __str__(self) -> str:
        return self.key
