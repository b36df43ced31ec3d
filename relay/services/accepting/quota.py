"""
Read a quota with a signature (LSP-15).

One statement reads the rows before the node is queried, so an ended session costs no node request.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings

from credits.queries import allowance_at
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, home, on_home
from gateway.chain.confirmation import confirmed
from gateway.chain.lsp6 import Permission
from gateway.chain.signatures import quota_digests, recover_signers
from relay.errors import QuotaSignatureInvalid, TimestampOutOfWindow
from relay.queries.calls import rows_of_quota
from relay.services.accepting.calls import Caller
from relay.services.accepting.preflight import MILLISECONDS_FROM, check_own
from users.errors import SignPermissionMissing

# The value of `resetDate` in the API if no paid period is running.
NO_RESET = -1
# A gas price at which home's quota is stated, because wallets compare it with gas limits.
_HOME_GAS_PRICE_WEI = 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Quota:
    """Available credits; the current paid period's credits and its end in unix seconds (0 and -1 without a period)."""

    available: int
    total: int
    reset_date: int

    @property
    def has_period(self) -> bool:
        """Whether a paid period is running."""
        return self.reset_date != NO_RESET


def read_quota(*, caller: Caller, address: str, timestamp: int, signature: bytes, now: datetime) -> Quota:
    """
    Return the caller's quota, if a controller with SIGN signed the request within the time window.

    Raises:
        TimestampOutOfWindow, NotYourProfile, UnusableSignature, QuotaSignatureInvalid, SignPermissionMissing.
        SessionEnded, AccountInactive: the session or the account has ended.
        NodeUnavailable: no node responded.
    """
    check_timestamp(timestamp=timestamp, now=now)
    check_own(
        profile_address=caller.profile_address,
        address=address,
        signers=lambda: signers_of(address=address, timestamp=timestamp, signature=signature),
    )
    return signed_quota(caller=caller, timestamp=timestamp, signature=signature, now=now)


def signed_quota(*, caller: Caller, timestamp: int, signature: bytes, now: datetime) -> Quota:
    """
    Return the caller's quota, if a controller with SIGN signed the request; the caller has checked the timestamp.

    Raises:
        UnusableSignature, QuotaSignatureInvalid, SignPermissionMissing.
        SessionEnded, AccountInactive: the session or the account has ended.
        NodeUnavailable: no node responded.
    """
    reading = quota_of(user_id=caller.user_id, session_id=caller.session_id, now=now)
    # Accounts are proved at home: a copy of the profile on another chain may have controllers that home has removed.
    with on_home():
        confirmed(
            lambda: _check_signature(address=caller.profile_address, timestamp=timestamp, signature=signature)
        )
    return reading


def gas_price_wei() -> int:
    """
    Return the price in wei at which credits are stated as gas on the current chain: 1 gwei at home, else today's price.

    Raises:
        NodeUnavailable: no node responded.
        FeesTooHigh: current gas prices exceed the service's cap.
    """
    chain = get_chain()
    if chain is home():
        return _HOME_GAS_PRICE_WEI
    base_fee_wei = get_chain_client().head().base_fee_wei
    return chain.fees.quote_new_call(base_fee_wei=base_fee_wei, market_tip_wei=0).expected_price_wei or 1


def signers_of(*, address: str, timestamp: int, signature: bytes) -> list[str]:
    """
    Return the addresses that may have signed the request: one for each accepted form of the message.

    Raises:
        UnusableSignature: no address can be recovered from the signature.
    """
    digests = quota_digests(address=address, timestamp=timestamp)
    return recover_signers(signature, *digests, chain_id=get_chain().id)[1]


def check_timestamp(*, timestamp: int, now: datetime) -> None:
    """
    Refuse a request whose `timestamp`, in unix seconds, is outside the window around the service's clock.

    Both times are compared in whole seconds, because wallets drop the fraction.

    Raises:
        TimestampOutOfWindow: the timestamp is outside the window.
    """
    clock = (now - _EPOCH) // _SECOND
    difference = timestamp - clock
    if abs(difference) <= settings.QUOTA_WINDOW_SECONDS:
        return
    advice = "Send seconds, not milliseconds." if timestamp >= MILLISECONDS_FROM else "Sign the current time."
    raise TimestampOutOfWindow(
        f"The timestamp is {difference:+d} s from the service's clock, serverTime. {advice}",
        serverTime=clock,
    )


def quota_of(*, user_id: int, session_id: UUID | None = None, now: datetime) -> Quota:
    """
    Return the user's quota.

    Raises:
        SessionEnded, AccountInactive: the session or the account has ended.
    """
    rows = rows_of_quota(user_id=user_id, session_id=session_id, now=now)
    allowance = allowance_at(rows.period, now=now)
    return Quota(
        available=rows.available,
        total=allowance.credits if allowance else 0,
        reset_date=int(allowance.ends_at.timestamp()) if allowance else NO_RESET,
    )


def _check_signature(*, address: str, timestamp: int, signature: bytes) -> None:
    """Accept any form of the message that recovers a controller with SIGN; costs one node round trip."""
    controllers = signers_of(address=address, timestamp=timestamp, signature=signature)
    permissions = get_chain_client().read_permissions(profile=address, controllers=controllers)
    if any(bits & Permission.SIGN for bits in permissions):
        return
    for controller, bits in zip(controllers, permissions, strict=True):
        if bits:
            raise SignPermissionMissing(
                f"The controller {controller} lacks SIGN on {address}.", controller=controller
            )
    raise QuotaSignatureInvalid(
        "The signature recovers no controller of the profile in any accepted form. Sign keccak256(address ‖ "
        "uint256(timestamp)) by personal_sign, with a controller that has SIGN."
    )
