"""A relay call in a web process: as submitted, and as approved with the stored rows and the state of the chain."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.conf import settings

from credits.errors import InsufficientCredits
from gateway.chain.config import get_chain
from gateway.chain.lsp25 import RelayCall
from gateway.chain.types import RelayQuery
from gateway.web import tracing
from relay.pricing import cost_in_credits
from relay.queries.calls import CallRows, Identity
from relay.services.accepting.preflight import Approval
from signer.transactions import SELF_TRANSFER_GAS
from sponsors.rules.policies import Answer, Question
from sponsors.rules.vouchers import SignedVoucher, Voucher


@dataclass(frozen=True, slots=True)
class Caller:
    """The owner of the profile for which a request was sent. The session, if there is one, is not verified yet."""

    user_id: int
    profile_address: str
    session_id: UUID | None = None
    # Without a token, the call's signature is the only authorisation.
    is_signed_in: bool = True


@dataclass(frozen=True, slots=True)
class SponsorChoice:
    """
    The sponsor that a request names, its voucher, and whether the user pays if the sponsor does not.

    If the sponsor is the operator's default, `own_refusal` is the error that the user's own account caused before.
    """

    slug: str
    user_may_pay: bool = False
    voucher: SignedVoucher | None = None
    own_refusal: InsufficientCredits | None = None


@dataclass(frozen=True, slots=True)
class Sponsorship:
    """
    The version of a policy that pays `share_percent` of a call, at most `credits`.

    With `is_quoted`, this version pays even if the policy has a newer one. `voucher` is the voucher that the call uses,
    and `signer` the address that signed it.
    """

    sponsor: str
    policy: str
    version_id: int
    share_percent: int
    credits: int
    is_quoted: bool
    voucher: Voucher | None = None
    signer: str | None = None


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A relay call as submitted."""

    caller: Caller
    call: RelayCall
    identity: Identity
    now: datetime
    # The id of the submitted quote. It is not verified yet: the quote may belong to another user.
    quote_id: UUID | None = None
    # The id of the HTTP request, for the log and for support.
    request_id: str = ""
    # Set only if tracing is enabled.
    trace: tracing.Request | None = None
    # Whether the chain was just read and confirms that profile and key manager belong together.
    is_pair_verified: bool = False
    sponsor: SponsorChoice | None = None


@dataclass(frozen=True, slots=True)
class ApprovedCall:
    """A request that the chain would execute now."""

    request: CallRequest
    rows: CallRows
    query: RelayQuery
    approval: Approval
    # The sponsor's decision, made just before the call is accepted, and how often it was made.
    sponsorship: Sponsorship | None = None
    decisions: int = 0
    # The question whose answer the sponsor's policies need before they can decide, and the answers so far.
    question: Question | None = None
    answers: Mapping[Question, Answer | None] = field(default_factory=dict)

    @property
    def wants_sponsor(self) -> bool:
        """Whether a sponsor's policies must be checked: the request or quote names a sponsor, and none has decided."""
        quoted = self.rows.quote is not None and self.rows.quote.sponsor_version_id is not None
        return self.sponsorship is None and (self.request.sponsor is not None or quoted)

    @property
    def user_credits(self) -> int:
        """The part of the call's highest cost that is held on the user's account."""
        return self.hold_credits - (self.sponsorship.credits if self.sponsorship else 0)

    @property
    def hold_key(self) -> str:
        """The idempotency key of the hold, so that equal requests of this generation are charged once."""
        identity = self.request.identity
        return f"relay:{identity.digest}:{identity.controller}:{self.rows.generation}"

    @property
    def channel(self) -> tuple[str, str, int]:
        """The call's nonce channel at the key manager."""
        return self.query.key_manager, self.query.controller, self.query.channel

    @property
    def gas_limit(self) -> int:
        return self.approval.gas.limit

    @property
    def worst_cost_wei(self) -> int:
        return self.gas_limit * self.approval.fees.max_fee_per_gas_wei

    @property
    def hold_credits(self) -> int:
        """The credits to hold in total: the call's highest cost, at most the quoted cost."""
        worst = cost_in_credits(gas=1, price_wei=self.worst_cost_wei, credit_wei=settings.CREDIT_WEI)
        return worst if self.quoted_cost is None else min(worst, self.quoted_cost)

    @property
    def quoted_cost(self) -> int | None:
        """The credits of the submitted quote, if any."""
        return None if self.rows.quote is None else self.rows.quote.credits

    @property
    def badge_debt(self) -> int:
        """The debt limit of the user's badges. It is 0 for untrusted code, which controls its own gas use."""
        return self.rows.badge_debt if self.approval.is_trusted else 0

    @property
    def risk_wei(self) -> int:
        """The service's highest loss if untrusted code invalidates the call before its broadcast."""
        return 0 if self.approval.is_trusted else SELF_TRANSFER_GAS * get_chain().fees.cap_wei
