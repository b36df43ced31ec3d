"""
Profiles that a sponsor asks for: deploy a new one, or open the account of an existing one.

Equal requests are one: the sponsor's key of the request decides, and from it follows the salt, so that an interrupted
request, repeated, deploys the same profile.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils.crypto import salted_hmac
from eth_hash.auto import keccak

from credits.models import ExpiringLot, HoldStatus
from gateway.chain import lsp23
from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, home, on_home
from gateway.chain.confirmation import confirmed
from gateway.chain.types import ProfileState
from relay.errors import (
    CopyUnsafe,
    CreationKeyUsed,
    OriginMissing,
    OriginUsed,
    ProfileNotRequested,
    ProfileNotThere,
    RegistrationsUsed,
)
from relay.models import ProfileCreation
from relay.services import removing
from relay.services.accepting import deployments
from relay.services.accepting.deployments import Order, WantedProfile, controllers_body
from signer.deployments import addresses_of
from sponsors.models import ApiKey, Purpose, Sponsor, SponsoredCall
from sponsors.rules.policies import DAY_SECONDS, period_of
from sponsors.rules.vouchers import SignedVoucher
from sponsors.services import first_credits
from sponsors.services.paying import SponsorChoice
from users.models import User
from users.services.profiles import user_of_profile

_DAY = timedelta(hours=24)
_NO_HASH = "0x" + bytes(32).hex()


@dataclass(frozen=True, slots=True)
class Request:
    """
    A request for a new profile: its controllers and metadata, or the salt and the data of the deployment.

    `key` is the request's `Idempotency-Key`; empty without one.
    """

    key: str
    controllers: Sequence[str] = ()
    metadata: bytes = b""
    salt: bytes = b""
    data: bytes = b""
    voucher: SignedVoucher | None = None
    # What stands for the person in the policy's daily number, such as a network; empty if unknown.
    origin: str = ""

    @property
    def body_hash(self) -> str:
        parts = [sorted(self.controllers), self.metadata.hex(), self.salt.hex(), self.data.hex()]
        return "0x" + keccak(json.dumps(parts).encode()).hex()

    @property
    def key_hash(self) -> str:
        """What makes requests of a sponsor equal."""
        return "0x" + hashlib.sha256(f"key {self.key}".encode()).hexdigest() if self.key else self.body_hash

    @property
    def row_key(self) -> str:
        """What makes requests of a sponsor equal on the current chain."""
        if get_chain() is home():
            return self.key_hash
        return "0x" + keccak(f"{self.key_hash} {get_chain().id}".encode()).hex()

    def profile(self, sponsor: Sponsor) -> WantedProfile:
        """
        Return the profile to deploy, with its addresses.

        Raises:
            PostDeploymentRefused: the data are refused; the error names the entry.
        """
        if self.controllers:
            salt = keccak(f"{sponsor.pk} {self.key_hash}".encode())
            new = lsp23.profile_of_controllers(
                controllers=self.controllers, metadata=self.metadata, salt=salt
            )
        else:
            new = lsp23.profile_of_data(data=self.data, salt=self.salt)
        return WantedProfile(new, addresses_of(new.deployment))


def create(
    *,
    sponsor: Sponsor,
    request: Request,
    now: datetime,
    request_id: str = "",
    api_key: ApiKey | None = None,
) -> ProfileCreation:
    """
    Deploy the requested profile on the current chain at the sponsor's cost, and return the request's row.

    `api_key` is the key with which the sponsor's server asks. The row has that of the newest deployment.

    A repeat returns the same row. It tries again after a deployment that failed or was never accepted, and after a
    reorganisation has removed a profile that existed before. A profile that exists already costs nothing.

    Raises:
        CreationKeyUsed: the key names another profile.
        OriginMissing, OriginUsed: the policy pays for no more new profiles of this origin today.
        PostDeploymentRefused: the data of the profile are refused; the error names the entry.
        CopyUnsafe: the profile exists at home, which has taken permissions from one of its first controllers.
        DomainError: the deployment was refused, see `deployments.accept`; nothing is stored.
    """
    earlier = _of_sponsor(sponsor).filter(request_key=request.row_key).first()
    if earlier is not None and earlier.body_hash != request.body_hash:
        raise CreationKeyUsed(f"The key was used for {earlier.profile_address}.")
    if earlier is not None and (
        _is_active(earlier) if earlier.hold else removing.exists(earlier.profile_address)
    ):
        return earlier
    wanted = request.profile(sponsor)
    if get_chain() is not home():
        _require_safe_copy(wanted)

    def store(user: User, hold_id: int | None) -> None:
        if hold_id is not None:
            _require_place_of_origin(sponsor, request, hold_id, now)
            first_credits.promise(profile=wanted.addresses.profile, hold_id=hold_id)
        row, is_new = ProfileCreation.objects.get_or_create(
            sponsor=sponsor,
            request_key=request.row_key,
            defaults={
                "body_hash": request.body_hash,
                "user": user,
                "hold_id": hold_id,
                "api_key": api_key,
                "origin": _origin(sponsor, request),
                **_columns(wanted),
            },
        )
        if not is_new:
            ProfileCreation.objects.filter(pk=row.pk).update(hold_id=hold_id, api_key=api_key)

    choice = SponsorChoice(sponsor.slug, voucher=request.voucher)
    deployments.accept(Order(wanted, now, sponsor=choice, request_id=request_id), store=store)
    return _of_sponsor(sponsor).get(request_key=request.row_key)


def _require_safe_copy(wanted: WantedProfile) -> None:
    """
    Refuse to deploy on another chain what would belong to controllers that the home chain has removed.

    Raises:
        CopyUnsafe: see there. A profile that home does not have yet has lost no controller.
    """
    with on_home():
        if not confirmed(
            lambda: removing.exists(wanted.addresses.profile), refuses=lambda is_there: not is_there
        ):
            return
        removal = confirmed(lambda: removing.needed(wanted), refuses=lambda removal: bool(removal.lost))
    if removal.lost:
        detail = "Home has removed first controllers. The profile's owner can copy it without them."
        raise CopyUnsafe(detail, controllers=removal.lost)


def _require_place_of_origin(sponsor: Sponsor, request: Request, hold_id: int, now: datetime) -> None:
    """
    Refuse an origin for which the policy has paid for as many new profiles today as it allows.

    The hold was placed in this transaction, which keeps the sponsor's account locked: its other requests wait.
    """
    paid = SponsoredCall.objects.filter(hold=hold_id).select_related("version").first()
    limit = None if paid is None else paid.version.origin_calls
    if paid is None or limit is None:
        return
    day = period_of(now, seconds=DAY_SECONDS)
    today = ProfileCreation.objects.filter(
        sponsor=sponsor, chain_id=get_chain().id, created_at__gte=day.start
    )
    if paid.version.purpose == Purpose.WELCOME:
        # A sponsor could name any origin for the operator's credits, so the sponsor itself is the origin.
        today = today.filter(hold__sponsored__version__purpose=Purpose.WELCOME)
    elif not request.origin:
        raise OriginMissing("Send `origin`; the policy limits new profiles by it.")
    else:
        today = today.filter(origin=_origin(sponsor, request))
    if today.exclude(request_key=request.row_key).count() >= limit:
        wait = int((day.end - now).total_seconds()) + 1
        raise OriginUsed(
            f"The policy pays for {limit} new profiles of an origin a day.", retry_after=wait, limit=limit
        )


def _origin(sponsor: Sponsor, request: Request) -> str:
    """Return a keyed hash, because an origin may be a person's network address."""
    text = f"{sponsor.pk} {request.origin}"
    return salted_hmac("relay.origin", text, algorithm="sha256").hexdigest() if request.origin else ""


def _columns(wanted: WantedProfile) -> dict[str, Any]:
    return {
        "profile_address": wanted.addresses.profile,
        "key_manager_address": wanted.addresses.key_manager,
        "controllers": controllers_body(wanted.new.controllers),
    }


def _is_active(row: ProfileCreation) -> bool:
    relayed = getattr(row.hold, "relay_transaction", None)
    return relayed is not None and relayed.status in relayed.ACTIVE


def register(
    *, sponsor: Sponsor, profile: str, now: datetime, api_key: ApiKey | None = None
) -> ProfileCreation:
    """
    Open the account of an existing profile, without a session, so that the sponsor can pay for its calls.

    Raises:
        ProfileNotThere: there is no profile with a key manager at the address.
        RegistrationsUsed: the sponsor has registered as many in 24 hours as the operator allows.
        AccountInactive, AccountBanned: support has closed or banned the account.
    """
    key = "0x" + keccak(f"register {profile}".encode()).hex()
    earlier = _of_sponsor(sponsor).filter(request_key=key).first()
    if earlier is not None:
        return earlier
    key_manager = confirmed(lambda: _key_manager_of(profile))
    with transaction.atomic(durable=True):
        # The sponsor's row is the lock of its registrations.
        Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor.pk)
        _require_place(sponsor, now)
        row, _ = ProfileCreation.objects.get_or_create(
            sponsor=sponsor,
            request_key=key,
            defaults={
                "kind": ProfileCreation.Kind.REGISTERED,
                "api_key": api_key,
                "body_hash": _NO_HASH,
                "user": user_of_profile(profile_address=profile),
                "profile_address": profile,
                "key_manager_address": key_manager,
            },
        )
    return row


def _key_manager_of(profile: str) -> str:
    client = get_chain_client()
    state: ProfileState = client.read_profile(
        profile=profile, controller=profile, digest=bytes(32), signature=b""
    )
    if state.owner is not None:
        manager = client.read_key_manager(key_manager=state.owner)
        if manager.target == profile:
            return state.owner
    raise ProfileNotThere(f"{profile} is no profile that a key manager owns.")


def _require_place(sponsor: Sponsor, now: datetime) -> None:
    limit = settings.SPONSOR_REGISTRATIONS_PER_DAY
    recent = ProfileCreation.objects.filter(
        sponsor=sponsor, kind=ProfileCreation.Kind.REGISTERED, created_at__gt=now - _DAY
    )
    times = list(recent.order_by("-created_at").values_list("created_at", flat=True)[:limit])
    if len(times) == limit:
        wait = int((times[-1] + _DAY - now).total_seconds()) + 1
        detail = f"The sponsor has registered {limit} profiles in 24 hours."
        raise RegistrationsUsed(detail, retry_after=wait, limit=limit)


def requested(*, sponsor: Sponsor, profile: str) -> list[ProfileCreation]:
    """
    Return the sponsor's newest request for this profile on each chain, the home chain's first.

    Raises:
        ProfileNotRequested: there is none.
    """
    rows = _of_sponsor(sponsor).filter(profile_address=profile).order_by("pk")
    newest = {row.chain_id: row for row in rows}
    if home().id not in newest:
        raise ProfileNotRequested(f"The sponsor has not requested {profile}.")
    return [newest.pop(home().id), *newest.values()]


def cost_of(row: ProfileCreation) -> int:
    """
    Return what the profile costs the sponsor in credits; until it is settled, what is held for it.

    A profile that the operator's welcome policy paid for costs the sponsor nothing.
    """
    sponsored = getattr(row.hold, "sponsored", None)
    if sponsored is None or sponsored.version.purpose == Purpose.WELCOME:
        return 0
    captured: int | None = sponsored.sponsor_hold.captured_amount
    is_open = sponsored.sponsor_hold.status == HoldStatus.HELD
    return int(sponsored.sponsor_hold.amount) if is_open else captured or 0


class Gift(NamedTuple):
    """First credits of a profile: how many, for how many days, and until when; None before the profile has them."""

    credits: int
    days: int
    expires_at: datetime | None


def first_credits_of(row: ProfileCreation) -> Gift | None:
    """Return the first credits that the profile gets or has got with this deployment; None if it gets none."""
    sponsored = getattr(row.hold, "sponsored", None)
    promised = getattr(sponsored, "first_credits", None)
    if sponsored is None or promised is None or promised.digest is None:
        return None
    hold, days = promised.hold, sponsored.version.first_days
    if hold.status == HoldStatus.HELD:
        return Gift(hold.amount, days, None)
    lot = ExpiringLot.objects.filter(entry__key=f"first:{hold.entry.key}").first() if hold.entry else None
    return None if lot is None else Gift(lot.credits, days, lot.expires_at)


def payer_of(row: ProfileCreation) -> str | None:
    """Return the name of the sponsor that pays for the deployment; None if no sponsor does."""
    sponsored = getattr(row.hold, "sponsored", None)
    return None if sponsored is None else sponsored.version.policy.sponsor.slug


def _of_sponsor(sponsor: Sponsor) -> QuerySet[ProfileCreation]:
    return ProfileCreation.objects.filter(sponsor=sponsor).select_related(
        "hold__relay_transaction",
        "hold__sponsored__sponsor_hold",
        "hold__sponsored__first_credits__hold__entry",
        "hold__sponsored__version__policy__sponsor",
    )
