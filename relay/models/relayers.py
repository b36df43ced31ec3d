"""Relayers, self-transfers that fill their gaps, and the treasury with its top-ups."""

from typing import TypeAlias

from django.db import models
from django.db.models import Q

from gateway.common.fields import AddressField, HashField, Uint256Field
from relay.models.calls import ChainIdField


class Relayer(models.Model):
    """
    One sending account and its next account nonce.

    Account nonces are taken under this row's lock. Each one is used up on chain, by its call or by a self-transfer.
    Only a nonce on which nothing was signed may be given back (`relay.services.accepting.unsigned`).
    """

    chain_id = ChainIdField()
    address = AddressField()
    next_account_nonce = models.BigIntegerField()
    # The account's transaction count at the newest tracked block.
    mined_account_nonce = models.BigIntegerField()
    balance_wei = Uint256Field(default=0)
    is_active = models.BooleanField(default=True, help_text="An inactive relayer takes no new calls.")
    quarantined_at = models.DateTimeField(
        null=True, help_text="When the chain showed that this key is used elsewhere; staff must resume it."
    )
    has_code = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The account has code (EIP-7702), so nodes take one of its transactions at a time.",
    )
    retired_at = models.DateTimeField(null=True, help_text="A retired relayer is neither funded nor tracked.")
    synced_at = models.DateTimeField(null=True)
    # PostgreSQL's timeline when the account nonce was last compared with the nodes' pools; null before the first time.
    timeline = models.BigIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [
            ("pause_relayer", "Can pause and resume a relayer"),
            ("add_spare_relayer", "Can retire a relayer, and ask to add or bring back one"),
            ("decide_relayer", "Can decide other people's requests about relayers"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["chain_id", "address"], name="relayer_address"),
            models.CheckConstraint(
                condition=Q(is_active=False) | Q(quarantined_at__isnull=True, retired_at__isnull=True),
                name="relayer_active_in_service",
            ),
        ]

    def __str__(self) -> str:
        return self.address

    @property
    def in_flight(self) -> int:
        """The number of account nonces that are taken and not mined yet."""
        return max(0, self.next_account_nonce - self.mined_account_nonce)

    @property
    def state(self) -> str:
        """The relayer's state in one word; `draining` while it is paused with calls in flight."""
        if self.retired_at is not None:
            return "retired"
        if self.quarantined_at is not None:
            return "quarantined"
        if self.is_active:
            return "active"
        return "draining" if self.in_flight else "paused"


class GapFiller(models.Model):
    """A self-transfer on an account nonce that no call uses; nodes would hold back everything behind this nonce."""

    relayer = models.ForeignKey(Relayer, models.PROTECT, related_name="gap_fillers")
    account_nonce = models.BigIntegerField()
    transaction_hash = HashField()
    raw = models.BinaryField()
    max_fee_per_gas_wei = Uint256Field()
    max_priority_fee_per_gas_wei = Uint256Field()
    node_message = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["relayer", "account_nonce"], name="gapfiller_account_nonce"),
        ]

    def __str__(self) -> str:
        return f"account nonce {self.account_nonce} of {self.relayer_id}"


class Treasury(models.Model):
    """The account that funds relayers, as the relay worker last read it from the chain."""

    chain_id = ChainIdField()
    address = AddressField()
    balance_wei = Uint256Field(default=0)
    synced_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "treasuries"
        constraints = [models.UniqueConstraint(fields=["chain_id", "address"], name="treasury_address")]

    def __str__(self) -> str:
        return self.address


class TopUpStatus(models.TextChoices):
    """The state of a top-up."""

    SENT = "sent"
    # Another transfer on the same account nonce, with higher fees, replaced this one.
    REPLACED = "replaced"
    MINED = "mined"
    # A transaction that the service did not send used the account nonce.
    LOST = "lost"


class TopUp(models.Model):
    """
    One transfer from the treasury to a relayer, stored before it is sent.

    It uses the account nonce that the chain expects next, and only one transfer is in flight at a
    time. A crash between storing and sending therefore cannot send an amount twice.
    """

    Status: TypeAlias = TopUpStatus

    chain_id = ChainIdField()
    relayer = models.ForeignKey("relay.Relayer", models.PROTECT, related_name="top_ups")
    treasury_address = AddressField()
    account_nonce = models.BigIntegerField()
    sequence = models.PositiveSmallIntegerField(default=0)
    amount_wei = Uint256Field()
    max_fee_per_gas_wei = Uint256Field()
    max_priority_fee_per_gas_wei = Uint256Field()
    transaction_hash = HashField()
    raw = models.BinaryField()
    status = models.CharField(max_length=12, choices=Status, default=Status.SENT)
    fee_wei = Uint256Field(null=True)
    block_number = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = "top-up"
        constraints = [
            models.UniqueConstraint(
                fields=["chain_id", "treasury_address", "account_nonce", "sequence"], name="topup_slot"
            ),
            models.UniqueConstraint(
                fields=["chain_id", "treasury_address"],
                condition=Q(status=TopUpStatus.SENT),
                name="topup_one_on_the_way",
            ),
        ]
        indexes = [models.Index(fields=["created_at"], name="topup_by_time")]

    def __str__(self) -> str:
        return self.transaction_hash
