"""Relay transactions: what a controller asked for, and how it ended."""

from typing import Self, TypeAlias

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import valid_until_of
from gateway.common.fields import AddressField, HashField, Uint256Field


class RelayStatus(models.TextChoices):
    """The words of the wire. Final ones never change again."""

    PENDING = "Pending"
    SUBMITTED = "Submitted"
    SUCCESS = "Success"
    FAILED = "Failed"
    EXPIRED = "Expired"
    CANCELLED = "Cancelled"
    EXECUTED_EXTERNALLY = "ExecutedExternally"


_IN_PROGRESS = (RelayStatus.PENDING, RelayStatus.SUBMITTED)
# By us, or by somebody else.
_EXECUTED = (RelayStatus.SUCCESS, RelayStatus.EXECUTED_EXTERNALLY)
_STANDING = (*_IN_PROGRESS, *_EXECUTED)
# Every end but success, in the order that the indexes name.
_UNSUCCESSFUL = (
    RelayStatus.FAILED,
    RelayStatus.EXPIRED,
    RelayStatus.CANCELLED,
    RelayStatus.EXECUTED_EXTERNALLY,
)


class RelayTransactionQuerySet(models.QuerySet["RelayTransaction"]):
    """The vocabulary of a relay transaction's life."""

    def in_progress(self) -> Self:
        """Keep those that are not settled."""
        return self.filter(status__in=RelayTransaction.IN_PROGRESS)

    def standing(self) -> Self:
        """Keep those that occupy their relay nonce: in progress, or executed."""
        return self.filter(status__in=RelayTransaction.STANDING)

    def of_channel(self, *, key_manager: str, controller: str, channel: int) -> Self:
        """Keep one controller's calls on one nonce channel."""
        return self.filter(key_manager_address=key_manager, controller_address=controller, channel=channel)


class RelayTransaction(models.Model):
    """
    One relay call that was accepted, with the credits held for it.

    Its identity is the LSP-25 digest and the controller recovered from the
    signature; a repeat after a dead end is a new `generation` of the same identity.
    """

    Status: TypeAlias = RelayStatus
    IN_PROGRESS = _IN_PROGRESS
    EXECUTED = _EXECUTED
    STANDING = _STANDING

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="relay_transactions")
    profile_address = AddressField()
    key_manager_address = AddressField()
    controller_address = AddressField()
    digest = HashField()
    generation = models.PositiveSmallIntegerField(default=0)
    channel = Uint256Field()
    relay_nonce = Uint256Field()
    validity = Uint256Field(default=0)
    payload = models.BinaryField()
    signature = models.BinaryField()
    # Accepted ahead of the chain's nonce: it depends on the calls before it in its channel.
    is_follower = models.BooleanField(default=False)
    relayer = models.ForeignKey("relay.Relayer", models.PROTECT, related_name="transactions")
    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="relay_transaction")
    # The hash that was answered; once the call has landed, the hash of the attempt that carried it.
    transaction_hash = HashField()
    gas_limit = models.BigIntegerField()
    expected_cost = models.BigIntegerField()
    real_cost = models.BigIntegerField(default=0)
    credits_before = models.BigIntegerField()
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING)
    # The status that the transaction will have once the chain has proved it; known before it is final.
    ends_as = models.CharField(max_length=20, choices=Status, blank=True, default="")
    end_code = models.CharField(max_length=64, blank=True, default="")
    end_detail = models.TextField(blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    objects = RelayTransactionQuerySet.as_manager()

    class Meta:
        permissions = [
            ("rebroadcast_relaytransaction", "Can broadcast a relay transaction again"),
            ("cancel_relaytransaction", "Can cancel a relay transaction that was never broadcast"),
            ("release_dead_hold", "Can release a hold that is proven dead"),
            ("export_relaytransaction", "Can take the list of relay transactions away"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["digest", "controller_address", "generation"], name="relaytransaction_identity"
            ),
            models.UniqueConstraint(
                fields=["key_manager_address", "controller_address", "relay_nonce"],
                condition=Q(status__in=_STANDING),
                name="relaytransaction_standing_nonce",
            ),
            models.CheckConstraint(
                condition=Q(status__in=_IN_PROGRESS, settled_at__isnull=True)
                | (~Q(status__in=_IN_PROGRESS) & Q(settled_at__isnull=False)),
                name="relaytransaction_settled_when_final",
            ),
        ]
        indexes = [
            # Rows come in the order of time: a few pages contain the last day.
            BrinIndex(fields=["created_at"], name="relaytransaction_by_time", autosummarize=True),
            models.Index(fields=["user", "-id"], name="relaytransaction_of_user"),
            # What a user's budget of dead ends counts; a call is added to this index only when it ends as one.
            models.Index(
                fields=["user", "-settled_at"],
                condition=Q(status__in=_UNSUCCESSFUL),
                name="relaytransaction_dead_ends",
            ),
            # What staff look for. Most calls succeed, and a list of those is found without an index.
            models.Index(
                fields=["status", "-id"],
                condition=Q(status__in=_UNSUCCESSFUL),
                name="relaytransaction_unsuccessful",
            ),
            models.Index(
                fields=["request_id"], condition=~Q(request_id=""), name="relaytransaction_of_request"
            ),
            models.Index(
                fields=["key_manager_address", "controller_address", "channel", "relay_nonce"],
                name="relaytransaction_of_channel",
            ),
            models.Index(
                fields=["relayer", "id"],
                condition=Q(status__in=_IN_PROGRESS),
                name="relaytransaction_in_progress",
            ),
        ]

    def __str__(self) -> str:
        return self.transaction_hash

    @property
    def is_in_progress(self) -> bool:
        """Whether the chain has not yet proved how it ended."""
        return self.status in self.IN_PROGRESS

    @property
    def calldata(self) -> bytes:
        """What a relayer sends to the key manager to execute the call."""
        return encode_execute_relay_call(
            signature=bytes(self.signature),
            nonce=self.relay_nonce,
            validity=self.validity,
            payload=bytes(self.payload),
        )

    def expires_before(self, timestamp: int) -> bool:
        """Return whether the call's validity ends before this unix time; an open end never does."""
        valid_until = valid_until_of(self.validity)
        return valid_until is not None and valid_until < timestamp
