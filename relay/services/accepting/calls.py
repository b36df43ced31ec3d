"""A submitted relay call: one object, whose fields `relay.services.accepting.submission.story` fills in order."""

from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any, NamedTuple
from uuid import UUID

from gateway.chain.config import get_chain, home
from gateway.chain.contracts import relay_call_bytes
from gateway.chain.fees import Fees
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery, RelayState
from gateway.common.errors import DomainError
from gateway.web import tracing
from relay.pricing import credits_of
from relay.queries.calls import CallRows, Identity
from relay.services.accepting.contention import Ticket
from signer.transactions import SELF_TRANSFER_GAS, SignedTransaction
from sponsors.queries import Offer
from sponsors.rules.policies import OutsideResponse, Purpose, Question
from sponsors.services.paying import Bill, SponsorChoice, Sponsorship
from sponsors.services.verifiers import AskedCall


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the profile for which a request was sent. The session, if there is one, is not verified yet."""

    user_id: int
    profile_address: str
    session_id: UUID | None = None
    # Without a token, the call's signature is the only authorisation.
    is_signed_in: bool = True


class Gas(NamedTuple):
    """The gas limit to sign, and the gas that the call is expected to use."""

    limit: int
    expected: int


@dataclass(frozen=True, slots=True)
class Approval:
    """The terms on which the chain would execute a call now. Gas in units, fees in wei."""

    gas: Gas
    fees: Fees
    # The relay nonce that the key manager expects next in the call's channel.
    chain_nonce: int
    # Whether profile and key manager run trusted implementations.
    is_trusted: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """What `relay_take_slots` returned for one call; `relay/functions.sql` lists the outcomes."""

    place: int
    outcome: str
    hold_id: int | None = None
    balance: int | None = None
    user_id: int | None = None
    number: int | None = None
    relayer_id: int | None = None
    relayer: str | None = None
    account_nonce: int | None = None
    transaction_hash: str | None = None


class Step(Enum):
    """What a call waits for. All are done for several calls at once, except ALONE."""

    ROWS = auto()
    """One statement reads `rows`."""
    CHAIN = auto()
    """One node request reads the `state` that `query` names."""
    OFFER = auto()
    """One statement reads the sponsor's `offer`."""
    ACCEPTANCE = auto()
    """One transaction takes a `slot`, signs and stores; with a remote signer, the signature is still missing then."""
    SIGNATURE = auto()
    """A remote signer signs, and a second transaction stores."""
    ALONE = auto()
    """After the batch, the call's own thread resumes the story: the next part is for this call only."""


@dataclass(slots=True, eq=False)
class SubmittedCall:
    """A relay call as submitted, and in the fields below what becomes known of it, in this order."""

    caller: Caller
    signed: RelayCall
    identity: Identity
    now: datetime
    # The id of the submitted quote. It is not verified yet: the quote may belong to another user.
    quote_id: UUID | None = None
    sponsor: SponsorChoice | None = None
    # The id of the HTTP request, for the log and for support.
    request_id: str = ""
    # Set only if tracing is enabled.
    trace: tracing.Request | None = None
    # Whether the transaction deploys the profile, which a sponsor pays.
    deploys_profile: bool = False
    # Whether the default sponsor is asked to pay for a new profile, because the one that requested it does not.
    is_welcome: bool = False

    rows: CallRows = field(init=False, repr=False)
    query: RelayQuery = field(init=False, repr=False)
    state: RelayState = field(init=False, repr=False)
    approval: Approval = field(init=False, repr=False)

    # The sponsor's policies and credits, the responses to their questions, and how often they have decided.
    offer: Offer | None = None
    responses: dict[Question, OutsideResponse | None] = field(default_factory=dict)
    decisions: int = 0
    sponsorship: Sponsorship | None = None
    # Why the named sponsor does not pay.
    sponsor_refusal: DomainError | None = None
    # Why the user, or the sponsor of a new profile, cannot pay, if the default sponsor is asked for that reason.
    own_refusal: DomainError | None = None

    # The call's place in line, if another transaction holds a lock that it needs.
    ticket: Ticket | None = None
    slot: Slot = field(init=False, repr=False)
    # The columns that `relay_insert_calls` stores.
    columns: dict[str, Any] = field(init=False, repr=False)

    @property
    def hold_key(self) -> str:
        """The idempotency key of the hold, so that equal requests of this generation are charged once."""
        return f"relay:{self.identity.digest}:{self.identity.controller}:{self.rows.generation}"

    @property
    def channel(self) -> tuple[str, str, int]:
        """The call's nonce channel at the key manager."""
        return self.query.key_manager, self.query.controller, self.query.channel

    @property
    def is_follower(self) -> bool:
        """Whether earlier calls of the channel must be executed first."""
        return self.signed.relay_nonce > self.approval.chain_nonce

    @property
    def data_bytes(self) -> int:
        """The size of the transaction's calldata."""
        payload = self.signed.payload
        return len(payload) if self.deploys_profile else relay_call_bytes(payload)

    @property
    def worst_cost_wei(self) -> int:
        approval = self.approval
        return approval.fees.highest_cost_wei(gas_limit=approval.gas.limit, data_bytes=self.data_bytes)

    @property
    def hold_credits(self) -> int:
        """The credits to hold in total: the call's highest cost, at most the quoted cost."""
        worst = credits_of(self.worst_cost_wei, credit_wei=self.rows.credit_wei)
        return worst if self.rows.quote is None else min(worst, self.rows.quote.credits)

    @property
    def user_credits(self) -> int:
        """The part of the call's highest cost that is held on the user's account."""
        return self.hold_credits - (self.sponsorship.credits if self.sponsorship else 0)

    @property
    def badge_debt(self) -> int:
        """The debt limit of the user's badges. It is 0 for untrusted code, which controls its own gas use."""
        return self.rows.badge_debt if self.approval.is_trusted else 0

    @property
    def risk_wei(self) -> int:
        """The service's highest loss if untrusted code invalidates the call before its broadcast."""
        if self.approval.is_trusted:
            return 0
        extra = self.approval.fees.highest_extra_fee_wei(gas_limit=SELF_TRANSFER_GAS, data_bytes=0)
        return SELF_TRANSFER_GAS * get_chain().fees.cap_wei + extra

    @property
    def quoted_version(self) -> int | None:
        """The version of a sponsor's policy that pays according to the submitted quote."""
        return None if self.rows.quote is None else self.rows.quote.sponsor_version_id

    @property
    def bill(self) -> Bill:
        """What a sponsor is asked to pay."""
        return Bill(
            user_id=self.caller.user_id,
            asked=AskedCall(
                profile=self.caller.profile_address,
                controller=self.identity.controller,
                chain_id=get_chain().id,
                digest=self.identity.digest,
                payload=self.signed.payload,
            ),
            key_manager=self.signed.key_manager,
            credits=self.hold_credits,
            gas_price_wei=self.approval.fees.max_fee_per_gas_wei,
            now=self.now,
            choice=self.sponsor,
            quoted_version=self.quoted_version,
            purpose=self._purpose,
        )

    @property
    def _purpose(self) -> Purpose:
        if not self.deploys_profile:
            return Purpose.CALLS
        return Purpose.WELCOME if self.is_welcome else Purpose.PROFILES

    def wanted_slot(self, place: int) -> dict[str, Any]:
        """Return the call in the form that `relay_take_slots` expects."""
        return {
            "place": place,
            "user_id": self.caller.user_id,
            "key": self.hold_key,
            "credits": self.user_credits,
            "debt_limit": self.badge_debt,
            "paid_only": not get_chain().spends_given_credits,
            "elsewhere": None if get_chain() is home() else get_chain().id,
            "key_manager": self.signed.key_manager,
            "controller": self.identity.controller,
            "channel": self.query.channel,
            "relay_nonce": self.signed.relay_nonce,
            "chain_nonce": self.approval.chain_nonce,
            "worst_cost_wei": self.worst_cost_wei,
            "risk_wei": self.risk_wei,
            "quote": self.quote_id and str(self.quote_id),
            "now": self.now.isoformat(),
            "sponsor": self.sponsorship and self.sponsorship.reference,
        }

    def to_store(self) -> dict[str, Any]:
        """Return the columns of the call, whose slot is taken, and of its attempt, without the signed bytes."""
        approval, slot = self.approval, self.slot
        expected = credits_of(
            approval.fees.expected_cost_wei(gas=approval.gas.expected, data_bytes=self.data_bytes),
            credit_wei=self.rows.credit_wei,
        )
        return {
            "chain_id": get_chain().id,
            "deploys_profile": self.deploys_profile,
            "user_id": self.caller.user_id,
            "profile_address": self.caller.profile_address,
            "key_manager_address": self.signed.key_manager,
            "controller_address": self.identity.controller,
            "digest": self.identity.digest,
            "generation": self.rows.generation,
            "channel": self.query.channel,
            "relay_nonce": self.signed.relay_nonce,
            "validity": self.signed.validity,
            "payload": as_hex(self.signed.payload),
            "signature": as_hex(self.signed.signature),
            "is_follower": self.is_follower,
            "relayer_id": slot.relayer_id,
            "account_nonce": slot.account_nonce,
            "hold_id": slot.hold_id,
            "gas_limit": approval.gas.limit,
            "max_fee_per_gas_wei": approval.fees.max_fee_per_gas_wei,
            "max_priority_fee_per_gas_wei": approval.fees.max_priority_fee_per_gas_wei,
            "max_extra_fee_wei": approval.fees.highest_extra_fee_wei(
                gas_limit=approval.gas.limit, data_bytes=self.data_bytes
            ),
            "credit_wei": self.rows.credit_wei,
            "expected_cost": expected - (self.sponsorship.part_of(expected) if self.sponsorship else 0),
            "quoted_cost": self.rows.quote and self.rows.quote.credits,
            "credits_before": slot.balance,
            "request_id": self.request_id,
            "created_at": self.now.isoformat(),
        }


def signed_columns(transaction: SignedTransaction) -> dict[str, str]:
    """Return the columns that only a signed call has."""
    return {"transaction_hash": transaction.transaction_hash, "raw": as_hex(transaction.raw)}


def as_hex(data: bytes) -> str:
    """Return bytes in PostgreSQL's text format for `bytea`."""
    return rf"\x{data.hex()}"


def unhex(text: str) -> bytes:
    """Return the bytes that `as_hex` wrote."""
    return bytes.fromhex(text.removeprefix(r"\x"))


# The story of a call yields what the call waits for, and returns the hash of its transaction. Steps are a part of it.
Story = Generator[Step, None, str]
Steps = Generator[Step, None, None]
