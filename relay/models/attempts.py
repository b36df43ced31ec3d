"""
Attempts: transactions signed for a relay call on an account nonce; their bytes are stored before they are sent.

With a remote signer, an `UnsignedCall` comes first.
"""

import re
from typing import Self, TypeAlias

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from gateway.chain.config import chains
from gateway.common.fields import AddressField, HashField, Uint256Field
from relay.models.calls import ChainIdField, RelayTransaction, current_chain_id

# The beginning of a hash, or a hash as lists shorten it: 0x12ab34…5678
HASH_PART = re.compile(r"(?P<begin>0x[0-9a-f]{6,64})(?:(?:…|\.{2,3})(?P<end>[0-9a-f]+))?", re.IGNORECASE)


class AttemptStatus(models.TextChoices):
    """The state of an attempt's bytes."""

    SIGNED = "signed"
    SENT = "sent"
    # A newer attempt on the same account nonce replaced this one: `REPLACED` if it was sent, `WITHDRAWN` if not.
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    MINED = "mined"


class AttemptQuerySet(models.QuerySet["Attempt"]):
    """Filters by hash and by status."""

    def with_hash(self, transaction_hash: str) -> Self:
        """Keep the attempt with this transaction hash, in any casing, on the current chain."""
        return self.filter(chain_id=current_chain_id(), transaction_hash=transaction_hash.lower())

    def with_hash_like(self, part: str) -> Self:
        """
        Keep attempts whose hash matches a `HASH_PART`, on any chain of the service; none for any other text.

        The filter compares whole hashes with a range, because a prefix search could not use the unique index in every
        collation.
        """
        match = HASH_PART.fullmatch(part.lower())
        if match is None:
            return self.none()
        least, most = (match["begin"].ljust(66, digit) for digit in "0f")
        return self.filter(
            chain_id__in=[chain.id for chain in chains()],
            transaction_hash__range=(least, most),
            transaction_hash__endswith=match["end"] or "",
        )

    def in_progress(self) -> Self:
        """Keep attempts of relay transactions that are not settled."""
        return self.filter(relay_transaction__status__in=RelayTransaction.IN_PROGRESS)

    def unsent(self) -> Self:
        """Keep attempts that wait for their first broadcast."""
        return self.in_progress().filter(status=Attempt.Status.SIGNED)


class Attempt(models.Model):
    """
    One signed transaction. Several may share an account nonce; the chain executes one of them.

    A `CALL` executes the relay call. A `CANCELLATION` is a self-transfer without value
    that uses up the account nonce of a call that can no longer be executed.
    """

    class Kind(models.TextChoices):
        """The purpose of the attempt's transaction."""

        CALL = "call"
        CANCELLATION = "cancellation"

    Status: TypeAlias = AttemptStatus
    # In these statuses, an attempt reserves nothing of the relayer's balance.
    COSTLESS = (AttemptStatus.WITHDRAWN, AttemptStatus.MINED)

    chain_id = ChainIdField()
    relay_transaction = models.ForeignKey(RelayTransaction, models.PROTECT, related_name="attempts")
    # No index of its own: that of `attempt_slot` begins with the relayer.
    relayer = models.ForeignKey("relay.Relayer", models.PROTECT, related_name="attempts", db_index=False)
    account_nonce = models.BigIntegerField()
    sequence = models.PositiveSmallIntegerField(default=0)
    kind = models.CharField(max_length=12, choices=Kind, default=Kind.CALL)
    status = models.CharField(max_length=12, choices=Status, default=Status.SIGNED)
    transaction_hash = HashField()
    raw = models.BinaryField()
    gas_limit = models.BigIntegerField()
    max_fee_per_gas_wei = Uint256Field()
    max_priority_fee_per_gas_wei = Uint256Field()
    max_extra_fee_wei = Uint256Field(db_default=0, help_text="The most that the chain charges besides gas.")
    node_message = models.TextField(blank=True, default="")
    block_number = models.BigIntegerField(null=True)
    block_hash = models.CharField(max_length=66, blank=True, default="")
    succeeded = models.BooleanField(null=True)
    gas_used = models.BigIntegerField(null=True)
    effective_gas_price_wei = Uint256Field(null=True)
    extra_fee_wei = Uint256Field(db_default=0, help_text="What the chain has charged besides gas.")
    created_at = models.DateTimeField()
    first_sent_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    mined_at = models.DateTimeField(null=True, help_text="When the service first read its block.")

    objects = AttemptQuerySet.as_manager()

    class Meta:
        permissions = [("export_attempt", "Can export attempts")]
        constraints = [
            models.UniqueConstraint(fields=["chain_id", "transaction_hash"], name="attempt_transaction_hash"),
            # The chain is not in the key, because a relayer belongs to one chain.
            models.UniqueConstraint(fields=["relayer", "account_nonce", "sequence"], name="attempt_slot"),
            models.CheckConstraint(
                condition=Q(block_number__isnull=True, succeeded__isnull=True, gas_used__isnull=True)
                | Q(block_number__isnull=False, succeeded__isnull=False, gas_used__isnull=False),
                name="attempt_receipt_whole",
            ),
        ]
        indexes = [
            # Rows are stored in time order, so a week of them occupies few pages.
            BrinIndex(fields=["created_at"], name="attempt_by_time", autosummarize=True),
            # Finds attempts that wait for their first broadcast, at a cost independent of the number in flight.
            models.Index(
                fields=["chain_id", "relayer", "account_nonce"],
                condition=Q(status=AttemptStatus.SIGNED),
                name="attempt_unsent",
            ),
            models.Index(
                fields=["block_number"], condition=Q(block_number__isnull=False), name="attempt_of_block"
            ),
        ]

    def __str__(self) -> str:
        return self.transaction_hash

    @property
    def worst_cost_wei(self) -> int:
        """The highest cost of this attempt for the relayer, in wei."""
        return self.gas_limit * self.max_fee_per_gas_wei + self.max_extra_fee_wei


class LeastTip(models.Model):
    """
    The lowest tip that a quorum of nodes takes, while it is above ours, and the attempt that they refused for it.

    The attempt's bytes tell whether they still do: nodes check the tip before the account nonce.
    """

    chain_id = models.BigIntegerField(primary_key=True)
    tip_wei = Uint256Field()
    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="+")
    learned_at = models.DateTimeField()
    confirmed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.tip_wei} wei per gas"


class UnsignedCall(models.Model):
    """
    A relay call that waits for its remote signature, between the two database transactions that accept it.

    The second of them replaces this row with the call's row. Until then, no caller has the call's hash. The signer
    signs exactly what `call` stores, so each request for the signature returns the same bytes. A call that is not
    signed is withdrawn; its account nonce is then given back or filled by a self-transfer.
    """

    chain_id = ChainIdField()
    # No index of its own: that of `unsignedcall_account_nonce` begins with the relayer.
    relayer = models.ForeignKey(
        "relay.Relayer", models.PROTECT, related_name="unsigned_calls", db_index=False
    )
    account_nonce = models.BigIntegerField()
    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="unsigned_call")
    key_manager_address = AddressField()
    controller_address = AddressField()
    relay_nonce = Uint256Field()
    worst_cost_wei = Uint256Field()
    call = models.JSONField(help_text="The argument of `relay_insert_calls`, without the signed bytes.")
    taken_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["relayer", "account_nonce"], name="unsignedcall_account_nonce"),
            models.UniqueConstraint(
                fields=["chain_id", "key_manager_address", "controller_address", "relay_nonce"],
                name="unsignedcall_relay_nonce",
            ),
        ]

    def __str__(self) -> str:
        return f"account nonce {self.account_nonce} of {self.relayer_id}"
