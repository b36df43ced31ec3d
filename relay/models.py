"""
Relayers, relay transactions and attempts, what reorganisations did to them, and who runs the loops of the relay.

A relay transaction is a relay call that was accepted, with its outcome. An attempt is one
transaction signed for it on an account nonce of a relayer; its bytes are stored before they
are sent. Every row names its chain, so that the rows of a second chain never collide with these.
"""

from pathlib import Path
from typing import ClassVar, Self, TypeAlias

import pgtrigger
from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Q

from gateway.chain.config import get_chain
from gateway.chain.contracts import encode_execute_relay_call
from gateway.chain.lsp25 import valid_until_of
from gateway.common.db import APPEND_ONLY
from gateway.common.fields import AddressField, HashField, Uint256Field


def current_chain_id() -> int:
    """Return the id of the chain that this process serves: the chain of every new row."""
    return get_chain().id


class RelayStatus(models.TextChoices):
    """The statuses as the API answers them. Only a reorganisation changes a final one."""

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
_ACTIVE = (*_IN_PROGRESS, *_EXECUTED)
# Every final status but success, in the order that the indexes name.
_UNSUCCESSFUL = (
    RelayStatus.FAILED,
    RelayStatus.EXPIRED,
    RelayStatus.CANCELLED,
    RelayStatus.EXECUTED_EXTERNALLY,
)
# The only failure code of a cancelled call that is the caller's doing, and so counts against the limits.
PREDECESSOR_FAILED = "predecessor-failed"
# Whether a call, named `ended`, that ended without effect did so by its caller's doing, and not by staff's, a node's
# or a relayer's.
CALLERS_DOING = (
    f"(ended.status <> '{RelayStatus.CANCELLED.value}' OR ended.failure_code = '{PREDECESSOR_FAILED}')"
)


def sql_values(*statuses: models.TextChoices) -> str:
    """Return the statuses as the list of an SQL `IN`. They are constants, so that partial indexes apply."""
    return "({})".format(", ".join(f"'{status.value}'" for status in statuses))


class RelayTransactionQuerySet(models.QuerySet["RelayTransaction"]):
    """Filters by status and by nonce channel."""

    def in_progress(self) -> Self:
        """Keep those that are not settled."""
        return self.filter(status__in=RelayTransaction.IN_PROGRESS)

    def active(self) -> Self:
        """Keep those that occupy their relay nonce: in progress, or executed."""
        return self.filter(status__in=RelayTransaction.ACTIVE)

    def of_channel(self, *, chain_id: int, key_manager: str, controller: str, channel: int) -> Self:
        """Keep one controller's calls on one nonce channel."""
        return self.filter(
            chain_id=chain_id, key_manager_address=key_manager, controller_address=controller, channel=channel
        )


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

    chain_id = models.BigIntegerField(default=current_chain_id)
    # The indexes below begin with the user; by relayer, only attempts are ever looked up.
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
    # Accepted ahead of the chain's nonce: it depends on the calls before it in its channel.
    is_follower = models.BooleanField(default=False)
    relayer = models.ForeignKey("relay.Relayer", models.PROTECT, related_name="transactions", db_index=False)
    # A reorganisation reopened it after a newer call had taken its relay nonce.
    is_superseded = models.BooleanField(db_default=False)
    hold = models.OneToOneField("credits.CreditHold", models.PROTECT, related_name="relay_transaction")
    # The hash that was answered; once the call has landed, the hash of the attempt that carried it.
    transaction_hash = HashField()
    gas_limit = models.BigIntegerField()
    expected_cost = models.BigIntegerField()
    real_cost = models.BigIntegerField(default=0)
    credits_before = models.BigIntegerField()
    status = models.CharField(max_length=20, choices=Status, default=Status.PENDING)
    # What the status will be once the chain has confirmed it; empty while that is open, and once it is final.
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
            ("export_relaytransaction", "Can take the list of relay transactions away"),
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
            # Rows come in the order of time: a few pages contain the last day.
            BrinIndex(fields=["created_at"], name="relaytransaction_by_time", autosummarize=True),
            models.Index(fields=["user", "-id"], name="relaytransaction_of_user"),
            # What the limit on unsuccessful calls counts; most calls are never added to this index.
            models.Index(
                fields=["user", "-settled_at"],
                condition=Q(status__in=_UNSUCCESSFUL),
                name="relaytransaction_of_limits",
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
                fields=["chain_id", "key_manager_address", "controller_address", "channel", "relay_nonce"],
                name="relaytransaction_of_channel",
            ),
            # Also what lists all that is in progress.
            models.Index(
                fields=["chain_id", "key_manager_address", "controller_address", "channel"],
                condition=Q(status__in=_IN_PROGRESS),
                name="relaytransaction_channel_busy",
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


class Relayer(models.Model):
    """
    One sending account and the next account nonce it will use.

    Account nonces are taken under this row's lock and are never given back: each
    one is used up on chain, by the call it was taken for or by a self-transfer.
    """

    chain_id = models.BigIntegerField(default=current_chain_id)
    address = AddressField()
    next_account_nonce = models.BigIntegerField()
    # The account's transaction count at the newest block the tracker saw.
    mined_account_nonce = models.BigIntegerField()
    balance_wei = Uint256Field(default=0)
    is_active = models.BooleanField(default=True, help_text="An inactive relayer takes no new calls.")
    quarantined_at = models.DateTimeField(
        null=True, help_text="When the chain showed that this key is used elsewhere; staff must resume it."
    )
    retired_at = models.DateTimeField(null=True, help_text="A retired relayer is neither funded nor tracked.")
    synced_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        permissions = [
            ("pause_relayer", "Can pause and resume a relayer"),
            ("add_spare_relayer", "Can add, retire and bring back a relayer"),
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
        """Account nonces that are taken and not mined yet."""
        return max(0, self.next_account_nonce - self.mined_account_nonce)

    @property
    def state(self) -> str:
        """How it takes part, in a word: it is `draining` while paused with calls in flight."""
        if self.retired_at is not None:
            return "retired"
        if self.quarantined_at is not None:
            return "quarantined"
        if self.is_active:
            return "active"
        return "draining" if self.in_flight else "paused"


class Treasury(models.Model):
    """The account that funds relayers, as the relay worker last read it from the chain."""

    chain_id = models.BigIntegerField(default=current_chain_id)
    address = AddressField()
    balance_wei = Uint256Field(default=0)
    synced_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "treasuries"
        constraints = [models.UniqueConstraint(fields=["chain_id", "address"], name="treasury_address")]

    def __str__(self) -> str:
        return self.address


class TopUpStatus(models.TextChoices):
    """How far a top-up has come."""

    SENT = "sent"
    # Another transfer on the same account nonce, with higher fees, took over.
    REPLACED = "replaced"
    MINED = "mined"
    # The account nonce was used by a transaction that is not ours.
    LOST = "lost"


class TopUp(models.Model):
    """
    One transfer from the treasury to a relayer, stored before it is sent.

    Its account nonce is the chain's, and only one is on the way at a time: whatever happens
    between storing and sending, the same amount is never sent twice.
    """

    Status: TypeAlias = TopUpStatus

    chain_id = models.BigIntegerField(default=current_chain_id)
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


class WorkerLoop(models.Model):
    """
    A loop of the relay worker: which worker holds its lease, and when its work last ended, succeeded and moved a call.

    The lease keeps two workers from doing the same work; correctness never depends on it.
    """

    chain_id = models.BigIntegerField(default=current_chain_id)
    name = models.CharField(max_length=32)
    owner = models.CharField(max_length=255)
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["chain_id", "name"], name="workerloop_name")]

    def __str__(self) -> str:
        return f"{self.name}, run by {self.owner}"


class AttemptStatus(models.TextChoices):
    """How far an attempt's bytes have come."""

    SIGNED = "signed"
    SENT = "sent"
    # A newer attempt on the same account nonce took over: after this one was sent, or before.
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    MINED = "mined"


class AttemptQuerySet(models.QuerySet["Attempt"]):
    """Filters by status, and what to leave out of a long row."""

    def with_hash(self, transaction_hash: str) -> Self:
        """Keep the one with this transaction hash, in any casing, on the chain that this process serves."""
        return self.filter(chain_id=current_chain_id(), transaction_hash=transaction_hash.lower())

    def in_progress(self) -> Self:
        """Keep attempts of relay transactions that are not settled."""
        return self.filter(relay_transaction__status__in=RelayTransaction.IN_PROGRESS)

    def unsent(self) -> Self:
        """Keep those that wait for their first broadcast."""
        return self.in_progress().filter(status=Attempt.Status.SIGNED)

    def broadcasted(self) -> Self:
        """Keep those that were broadcast and are not mined."""
        return self.in_progress().filter(status=Attempt.Status.SENT)

    def without_payload(self) -> Self:
        """Leave out what the controller has signed; if it is needed after all, it is read separately."""
        return self.defer("relay_transaction__payload", "relay_transaction__signature")

    def without_bytes(self) -> Self:
        """Leave out everything that is long; if it is needed after all, it is read separately."""
        return self.without_payload().defer("raw", "node_message")

    def in_nonce_order(self) -> Self:
        """Order as the chain will execute them."""
        return self.order_by("relayer_id", "account_nonce", "sequence")


class Attempt(models.Model):
    """
    One signed transaction. Several may share an account nonce; the chain takes one of them.

    A `CALL` carries the relay call. A `CANCELLATION` is a self-transfer without value
    that uses up the account nonce of a call that cannot be executed any more.
    """

    class Kind(models.TextChoices):
        """What the transaction does on chain."""

        CALL = "call"
        CANCELLATION = "cancellation"

    Status: TypeAlias = AttemptStatus
    # These take nothing from the relayer's balance any more.
    COSTLESS = (AttemptStatus.WITHDRAWN, AttemptStatus.MINED)

    chain_id = models.BigIntegerField(default=current_chain_id)
    relay_transaction = models.ForeignKey(RelayTransaction, models.PROTECT, related_name="attempts")
    # `attempt_slot` begins with the relayer.
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
    node_message = models.TextField(blank=True, default="")
    block_number = models.BigIntegerField(null=True)
    block_hash = models.CharField(max_length=66, blank=True, default="")
    succeeded = models.BooleanField(null=True)
    gas_used = models.BigIntegerField(null=True)
    effective_gas_price_wei = Uint256Field(null=True)
    created_at = models.DateTimeField()
    first_sent_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    mined_at = models.DateTimeField(null=True, help_text="When its block was first seen here.")

    objects = AttemptQuerySet.as_manager()

    class Meta:
        permissions = [("export_attempt", "Can take the list of attempts away")]
        constraints = [
            models.UniqueConstraint(fields=["chain_id", "transaction_hash"], name="attempt_transaction_hash"),
            # A relayer is of one chain, and so are its account nonces.
            models.UniqueConstraint(fields=["relayer", "account_nonce", "sequence"], name="attempt_slot"),
            models.CheckConstraint(
                condition=Q(block_number__isnull=True, succeeded__isnull=True, gas_used__isnull=True)
                | Q(block_number__isnull=False, succeeded__isnull=False, gas_used__isnull=False),
                name="attempt_receipt_whole",
            ),
        ]
        indexes = [
            # Rows come in the order of time: a few pages contain what was signed in a week.
            BrinIndex(fields=["created_at"], name="attempt_by_time", autosummarize=True),
            # What waits for its first broadcast, however much is in flight.
            models.Index(
                fields=["relayer", "account_nonce"],
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
        """The most that this attempt can take from the relayer's balance, in wei."""
        return self.gas_limit * self.max_fee_per_gas_wei


class Loss(models.Model):
    """
    Gas that the service may lose, or has lost, because no user pays for it.

    Reserved in the transaction that signs what may cost it, at the most it can cost, and corrected once that is known.
    """

    class Kind(models.TextChoices):
        """What costs the service gas."""

        REPLACEMENT = "replacement", "replacement beyond the hold"
        CANCELLATION = "cancellation", "self-transfer that cancels a call"
        UNTRUSTED = "untrusted", "call of unvetted code"
        GAP = "gap", "self-transfer that fills a gap"
        QUOTE = "quote", "price that was promised"

    chain_id = models.BigIntegerField(default=current_chain_id)
    # Of a call the key of its hold.
    key = models.CharField(max_length=255, help_text="Names the cause; the same key is counted once.")
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


class FinalBlock(models.Model):
    """
    The newest final block up to which every settled call was compared with the chain.

    Calls that were settled in blocks above it are reopened when their block disappears. If
    it disappears itself, the tracker stops until an operator decides.
    """

    chain_id = models.BigIntegerField(default=current_chain_id, unique=True)
    number = models.BigIntegerField()
    block_hash = models.CharField(max_length=66)
    replaced_at = models.DateTimeField(
        null=True, help_text="Since when the node has had another block at this height."
    )

    def __str__(self) -> str:
        return f"block {self.number}"


class ReversedSettlement(models.Model):
    """A settlement that was undone because its block disappeared: how the call had ended, and where."""

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


class GapFiller(models.Model):
    """A self-transfer on an account nonce that belongs to no call any more and would hold up the relayer."""

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


def _functions() -> str:
    """Return the SQL of `functions.sql`, with the names of statuses from the one place that has them."""
    names = {
        "in_progress": sql_values(*RelayTransaction.IN_PROGRESS),
        "active": sql_values(*RelayTransaction.ACTIVE),
        "unsuccessful": sql_values(*RelayTransaction.UNSUCCESSFUL),
        "callers_doing": CALLERS_DOING,
        "costless": sql_values(*Attempt.COSTLESS),
        "pending": f"'{RelayTransaction.Status.PENDING}'",
        "call_kind": f"'{Attempt.Kind.CALL}'",
        "signed": f"'{Attempt.Status.SIGNED}'",
        "untrusted": f"'{Loss.Kind.UNTRUSTED}'",
    }
    text = Path(__file__).with_name("functions.sql").read_text()
    for name, sql in names.items():
        text = text.replace(f"@{name}@", sql)
    return text


# Accepting calls, set-based.
FUNCTIONS = _functions()
