"""Relay transactions: accepted relay calls with their outcomes, and outcomes reversed by reorganisations."""

from typing import Any, ClassVar, Self, TypeAlias

import pgtrigger
from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from gateway.chain.config import get_chain
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import valid_until_of
from gateway.common.fields import AddressField, HashField, Uint256Field
from gateway.common.models import APPEND_ONLY


def current_chain_id() -> int:
    """Return the id of the chain that this process serves; every new row gets it."""
    return get_chain().id


class ChainIdField(models.BigIntegerField[int, int]):
    """The chain of a row. It defaults to the process's chain; migrations record a plain integer without a default."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"default": current_chain_id})

    def deconstruct(self) -> Any:
        """Describe the field as Django's own, so that no migration imports this module."""
        name, _, args, kwargs = super().deconstruct()
        del kwargs["default"]
        return name, "django.db.models.BigIntegerField", args, kwargs


class RelayStatus(models.TextChoices):
    """The statuses that the API returns. Only a reorganisation changes a final one."""

    PENDING = "Pending"
    SUBMITTED = "Submitted"
    SUCCESS = "Success"
    FAILED = "Failed"
    EXPIRED = "Expired"
    CANCELLED = "Cancelled"
    EXECUTED_EXTERNALLY = "ExecutedExternally"


_IN_PROGRESS = (RelayStatus.PENDING, RelayStatus.SUBMITTED)
# Executed by one of our relayers, or by another sender.
_EXECUTED = (RelayStatus.SUCCESS, RelayStatus.EXECUTED_EXTERNALLY)
_ACTIVE = (*_IN_PROGRESS, *_EXECUTED)
# Every final status except success, in the order of the indexes.
_UNSUCCESSFUL = (
    RelayStatus.FAILED,
    RelayStatus.EXPIRED,
    RelayStatus.CANCELLED,
    RelayStatus.EXECUTED_EXTERNALLY,
)
# The only failure code for which a cancelled call counts against its caller's limits: the caller caused it.
PREDECESSOR_FAILED = "predecessor-failed"
# Failure codes of mined calls that cost nobody but the service: a reopened call took the relay nonce, and somebody else
# deployed the profile first, or its copy with controllers that were to be removed.
OVERTAKEN, DEPLOYED_FIRST, COPY_TAKEN = (
    "overtaken-by-reopened-call",
    "deployed-by-somebody-else",
    "copy-taken",
)
UNCHARGED = (OVERTAKEN, DEPLOYED_FIRST, COPY_TAKEN)
# An SQL condition on a call (alias `ended`) without effect: its caller caused the end, not staff, a node or a relayer.
CALLERS_DOING = (
    f"(ended.status <> '{RelayStatus.CANCELLED.value}' OR ended.failure_code = '{PREDECESSOR_FAILED}')"
)


def sql_values(*statuses: models.TextChoices) -> str:
    """Return the statuses as literals for an SQL `IN`: PostgreSQL cannot use a partial index with parameters."""
    return "({})".format(", ".join(f"'{status.value}'" for status in statuses))


IN_PROGRESS_SQL, ACTIVE_SQL = sql_values(*_IN_PROGRESS), sql_values(*_ACTIVE)


def calldata_of(
    *, deploys_profile: bool, signature: bytes, nonce: int, validity: int, payload: bytes
) -> bytes:
    """Return the calldata of a call, given its columns."""
    if deploys_profile:
        return payload
    return encode_execute_relay_call(signature=signature, nonce=nonce, validity=validity, payload=payload)


class RelayTransactionQuerySet(models.QuerySet["RelayTransaction"]):
    """Filters by status and by nonce channel."""

    def in_progress(self) -> Self:
        """Keep calls that are not settled."""
        return self.filter(status__in=RelayTransaction.IN_PROGRESS)

    def active(self) -> Self:
        """Keep calls that occupy their relay nonce: in progress, or executed."""
        return self.filter(status__in=RelayTransaction.ACTIVE)

    def of_channel(self, *, chain_id: int, key_manager: str, controller: str, channel: int) -> Self:
        """Keep one controller's calls on one nonce channel."""
        return self.filter(
            chain_id=chain_id, key_manager_address=key_manager, controller_address=controller, channel=channel
        )


_FIRST_PRICE = """
SELECT credit_wei INTO NEW.credit_wei FROM relay_creditprice WHERE chain_id = NEW.chain_id AND is_first;
RETURN NEW;
"""


class RelayTransaction(models.Model):
    """
    One relay call that was accepted, with the credits held for it.

    Its identity is the LSP-25 digest and the controller recovered from the
    signature; a repeat of a call that ended without success is a new `generation` of the same identity.
    """

    Status: TypeAlias = RelayStatus
    IN_PROGRESS = _IN_PROGRESS
    EXECUTED = _EXECUTED
    ACTIVE = _ACTIVE
    UNSUCCESSFUL = _UNSUCCESSFUL

    chain_id = ChainIdField()
    # A sponsor pays for the profile itself: `key_manager_address` is then the factory, `controller_address` the new
    # profile, and `payload` the whole calldata. The relay nonce is 0, so a profile has one active deployment.
    deploys_profile = models.BooleanField(default=False, db_default=False)
    # No indexes of their own: indexes below begin with the user, and only attempts are looked up by relayer.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, related_name="relay_transactions", db_index=False
    )
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
    # The call was accepted ahead of the chain's relay nonce, so it depends on earlier calls of its channel.
    is_follower = models.BooleanField(default=False)
    relayer = models.ForeignKey("relay.Relayer", models.PROTECT, related_name="transactions", db_index=False)
    # A reorganisation reopened the call after a newer call had taken its relay nonce.
    is_superseded = models.BooleanField(db_default=False)
    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="relay_transaction")
    # The hash that the caller was given; once the call is settled, the hash of the attempt that executed it.
    transaction_hash = HashField()
    gas_limit = models.BigIntegerField()
    # The wei of a credit when the call was accepted or quoted. Every later computation about the call uses it.
    credit_wei = Uint256Field()
    expected_cost = models.BigIntegerField()
    real_cost = models.BigIntegerField(default=0)
    # The highest cost, for a call submitted with a quote.
    quoted_cost = models.BigIntegerField(null=True)
    credits_before = models.BigIntegerField()
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING)
    # The final status that the call will get, if known before confirmation; empty otherwise, and after settlement.
    terminal_status = models.CharField(max_length=20, choices=Status, blank=True, default="")
    failure_code = models.CharField(max_length=64, blank=True, default="")
    failure_detail = models.TextField(blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True)

    objects = RelayTransactionQuerySet.as_manager()

    class Meta:
        permissions = [
            ("rebroadcast_relaytransaction", "Can broadcast a relay transaction again"),
            ("cancel_relaytransaction", "Can cancel a relay transaction that was never broadcast"),
            ("release_orphaned_hold", "Can release a hold that nothing can close any more"),
            ("export_relaytransaction", "Can export relay transactions"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["chain_id", "digest", "controller_address", "generation"],
                name="relaytransaction_identity",
            ),
            models.UniqueConstraint(
                fields=["chain_id", "key_manager_address", "controller_address", "relay_nonce"],
                condition=Q(status__in=_ACTIVE, is_superseded=False),
                name="relaytransaction_active_nonce",
            ),
            models.CheckConstraint(
                condition=Q(status__in=_IN_PROGRESS, settled_at__isnull=True)
                | (~Q(status__in=_IN_PROGRESS) & Q(settled_at__isnull=False)),
                name="relaytransaction_settled_when_final",
            ),
        ]
        indexes = [
            # Rows are stored in time order, so the last day occupies few pages.
            BrinIndex(fields=["created_at"], name="relaytransaction_by_time", autosummarize=True),
            models.Index(fields=["user", "-id"], name="relaytransaction_of_user"),
            # The calls that the limit on calls without effect counts; most calls are not in this index.
            models.Index(
                fields=["user", "-settled_at"],
                condition=Q(status__in=_UNSUCCESSFUL),
                name="relaytransaction_of_limits",
            ),
            # Staff filter by these statuses. Most calls succeed, so a list of successes needs no index.
            models.Index(
                fields=["status", "-id"],
                condition=Q(status__in=_UNSUCCESSFUL),
                name="relaytransaction_unsuccessful",
            ),
            models.Index(
                fields=["request_id"], condition=~Q(request_id=""), name="relaytransaction_of_request"
            ),
            models.Index(
                fields=["chain_id", "key_manager_address", "controller_address", "channel", "relay_nonce"],
                name="relaytransaction_of_channel",
            ),
            # Also serves the list of all calls in progress.
            models.Index(
                fields=["chain_id", "key_manager_address", "controller_address", "channel"],
                condition=Q(status__in=_IN_PROGRESS),
                name="relaytransaction_channel_busy",
            ),
        ]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [
            # Version 1.0 stores no price, and charges at the first.
            pgtrigger.Trigger(
                name="first_price",
                when=pgtrigger.Before,
                operation=pgtrigger.Insert,
                condition=pgtrigger.Condition("NEW.credit_wei IS NULL"),
                func=_FIRST_PRICE,
            )
        ]

    def __str__(self) -> str:
        return self.transaction_hash

    @property
    def is_in_progress(self) -> bool:
        """Whether the call is not settled yet."""
        return self.status in self.IN_PROGRESS

    @property
    def calldata(self) -> bytes:
        """The calldata that a relayer sends to the key manager, or to the factory."""
        return calldata_of(
            deploys_profile=self.deploys_profile,
            signature=bytes(self.signature),
            nonce=self.relay_nonce,
            validity=self.validity,
            payload=bytes(self.payload),
        )

    def expires_before(self, timestamp: int) -> bool:
        """Return whether the call's validity ends before this unix time; an open end never does."""
        valid_until = valid_until_of(self.validity)
        return valid_until is not None and valid_until < timestamp


class ReversedSettlement(models.Model):
    """A settlement reversed because its block disappeared: the call's earlier outcome and its block."""

    relay_transaction = models.ForeignKey(
        RelayTransaction, models.PROTECT, related_name="reversed_settlements"
    )
    number = models.PositiveSmallIntegerField(help_text="0 for the call's first settlement.")
    status = models.CharField(max_length=20, choices=RelayStatus)
    failure_code = models.CharField(max_length=64, blank=True, default="")
    real_cost = models.BigIntegerField()
    transaction_hash = HashField()
    block_number = models.BigIntegerField()
    block_hash = models.CharField(max_length=66)
    settled_at = models.DateTimeField()
    reversed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["relay_transaction", "number"], name="reversedsettlement_number"),
        ]
        indexes = [models.Index(fields=["-reversed_at"], name="reversedsettlement_newest")]
        triggers: ClassVar[list[pgtrigger.Trigger]] = [APPEND_ONLY]

    def __str__(self) -> str:
        return f"settlement {self.number} of {self.transaction_hash}"
