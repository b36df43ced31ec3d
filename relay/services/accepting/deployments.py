"""
Accept the deployment of a profile: a new one, for which a sponsor pays, or its copy, for which its user pays.

It takes the path of a relay call: the same holds, relayers, account nonces and attempts. The account of a new profile
is opened in the transaction that accepts it, so a refusal leaves no account.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings
from django.db import OperationalError, transaction
from eth_hash.auto import keccak

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain
from gateway.chain.confirmation import confirmed
from gateway.chain.errors import CallReverted
from gateway.chain.lsp23 import Controller, NewProfile
from gateway.chain.lsp25 import RelayCall
from gateway.chain.signing import get_signer
from gateway.chain.types import RelayQuery
from gateway.common import db
from gateway.common.errors import DomainError
from gateway.common.fields import checksum
from relay.errors import CreationOff, DeploymentRefused, RelayPaused
from relay.pricing import gas_limit_for
from relay.queries.calls import CallKey, Identity, active_transaction, rows_of_calls
from relay.services.accepting import acceptance, preflight, submission, unsigned
from relay.services.accepting.calls import Approval, Caller, Gas, Step, SubmittedCall
from relay.services.accepting.contention import locked
from signer import removals
from signer.deployments import FACTORY, MODULE, RELEASES, Addresses, Deployment, encode
from signer.removals import CopyWithRemoval
from sponsors.queries import offers_for
from sponsors.services import refusals
from sponsors.services.paying import SponsorChoice
from users.errors import UntrustedCode
from users.models import User
from users.queries import require_active_state
from users.services.profiles import user_of_profile
from users.services.trusted_code import trusts

# No user has this id: the account is opened when the deployment is accepted.
_NOBODY = 0
_WORD = 32


@dataclass(frozen=True, slots=True)
class WantedProfile:
    """A profile that a sponsor asks for, with the addresses that the factory gives it."""

    new: NewProfile
    addresses: Addresses


def controllers_body(controllers: Iterable[Controller]) -> list[dict[str, str]]:
    """Return controllers as the API names them, with permissions as LSP-6 encodes them."""
    return [{"address": one.address, "permissions": f"0x{int(one.permissions):064x}"} for one in controllers]


# Called in the transaction that accepts, with the profile's user and the hold; None if the profile existed already.
Store = Callable[[User, int | None], None]


@dataclass(frozen=True, slots=True)
class Order:
    """
    A profile to deploy on the current chain, and who pays: a sponsor, or the profile's user.

    Without `user_id`, the account is opened with the deployment. `with_removal` is the copy of a profile from which
    controllers are removed in the same transaction.
    """

    wanted: WantedProfile
    now: datetime
    sponsor: SponsorChoice | None = None
    user_id: int | None = None
    request_id: str = ""
    with_removal: CopyWithRemoval | None = None

    def call(self) -> SubmittedCall:
        """Return the deployment as a call that is to be accepted."""
        profile, deploying = self.wanted.addresses.profile, encode(self.wanted.new.deployment)
        target, calldata = FACTORY, deploying
        if self.with_removal is not None:
            target, calldata = removals.MULTICALL, removals.encode(self.with_removal)
        user_id = self.user_id or _user_of(profile)
        # The chain is a part of the digest, because the digest is a part of the hold's key. The removal is none: of a
        # profile there is one copy.
        digest = keccak(get_chain().id.to_bytes(_WORD, "big") + deploying)
        call = SubmittedCall(
            Caller(user_id or _NOBODY, profile),
            RelayCall(target, calldata, b"", relay_nonce=0, validity=0),
            Identity("0x" + digest.hex(), profile),
            self.now,
            sponsor=self.sponsor,
            request_id=self.request_id,
            deploys_profile=True,
        )
        call.query = RelayQuery(
            profile=profile,
            key_manager=target,
            controller=profile,
            channel=0,
            sender=get_signer().addresses()[0],
            calldata=calldata,
            gas_limit=None,
            gas_cap=settings.RELAY_DEPLOYMENT_MAX_GAS,
        )
        return call


def _user_of(profile: str) -> int | None:
    return User.objects.filter(profile_address=profile).values_list("pk", flat=True).first()


def accept(order: Order, *, store: Store) -> None:
    """
    Have a relayer deploy the profile at the payer's cost, unless it exists; call `store` in the same transaction.

    A deployment that is in progress, or that has succeeded, is not sent again. One that failed is tried again.

    Raises:
        CreationOff, ChainTakesNoCalls, ChainPriceOutdated, RelayPaused: the service deploys no profiles now.
        UntrustedCode, DeploymentRefused: the chain's contracts are not those that the service deploys with.
        AccountInactive, AccountBanned: support has closed or banned the account of this address.
        DomainError: nobody pays, or no relayer can take it; nothing is stored.
    """
    preflight.check_chain()
    if not settings.RELAY_DEPLOYMENT_MAX_GAS:
        raise CreationOff("This service deploys no profiles. Ask its operator.")
    try:
        _deploy(order, store)
    except DomainError:
        # An equal request may have been accepted meanwhile, and have taken the sponsor's last place.
        if not _repeats(order.call(), store):
            raise


def _deploy(order: Order, store: Store) -> None:
    call = order.call()
    if _repeats(call, store):
        return
    _check(call, order.wanted.new.deployment)
    if confirmed(lambda: _exists(call), refuses=lambda exists: exists):
        with transaction.atomic(durable=True):
            store(user_of_profile(profile_address=order.wanted.addresses.profile), None)
        return
    confirmed(lambda: _simulate(call, order.wanted))
    _take(call, store)


def _repeats(call: SubmittedCall, store: Store) -> bool:
    """Read the rows; return whether the deployment was accepted before. Then store the request for it, too."""
    (call.rows,) = rows_of_calls(
        [CallKey(call.identity, call.query.key_manager, call.caller.user_id, None, call.now)]
    )
    if call.caller.user_id != _NOBODY:
        require_active_state(call.rows.session_state)
    if get_signer().is_remote and unsigned.finish_equal(call):
        return True
    if call.rows.transaction_hash is None:
        return False
    _store_repeat(call, store)
    return True


def _check(call: SubmittedCall, deployment: Deployment) -> None:
    """Refuse what the rows refuse: a pause, and implementations that staff do not trust."""
    if call.rows.is_paused:
        raise RelayPaused
    profile, key_manager = deployment.profile, deployment.key_manager
    is_known = any(one[:2] == (profile, key_manager) for one in RELEASES) and deployment.module == MODULE
    if not is_known or not trusts(
        call.rows.trusted_codes, profile_code=profile, key_manager_code=key_manager
    ):
        raise UntrustedCode(
            "Staff of the service do not trust the implementations that it deploys.",
            profileCode=profile,
            keyManagerCode=key_manager,
        )


def _exists(call: SubmittedCall) -> bool:
    """Read the chain; return whether this profile is deployed. Its address follows from all of its data."""
    (call.state,) = get_chain_client().read_relay_states([replace(call.query, calldata=b"")])
    return bool(call.state.profile_code_name)


def _simulate(call: SubmittedCall, wanted: WantedProfile) -> None:
    """
    Have the node execute the deployment, and set the terms on which it would be accepted.

    Raises:
        DeploymentRefused: it reverts, takes too much gas, or deploys at other addresses.
    """
    client, head = get_chain_client(), call.state.head
    # The signer applies the limit of calls to deployments too.
    of_calls = preflight.maximum_gas(is_trusted=True, head=head)
    maximum: int = min(settings.RELAY_DEPLOYMENT_MAX_GAS, of_calls)
    try:
        returned = client.read_view(
            contract=call.query.key_manager, calldata=call.query.calldata, gas=maximum
        )
        gas = client.simulate_relay_call(
            sender=call.query.sender,
            key_manager=call.query.key_manager,
            calldata=call.query.calldata,
            gas_cap=maximum,
        )
    except CallReverted as reverted:
        raise DeploymentRefused(
            f"The chain refuses the deployment, or it needs more than {maximum} gas.", maximum=maximum
        ) from reverted
    is_multicall = call.query.key_manager == removals.MULTICALL
    if (removals.deployed_addresses if is_multicall else _addresses_in)(returned) != wanted.addresses:
        detail = "The contract at the factory's address is not the factory."
        raise DeploymentRefused(detail, maximum=maximum)
    limit = gas_limit_for(estimate=gas, maximum=maximum)
    preflight.check_gas(gas_limit=limit, maximum=maximum)
    call.approval = Approval(Gas(limit, gas), preflight.fees_of(call), chain_nonce=0, is_trusted=True)


def _addresses_in(returned: bytes) -> Addresses | None:
    if len(returned) != 2 * _WORD:
        return None
    profile, key_manager = (checksum("0x" + word.hex()) for word in (returned[12:_WORD], returned[-20:]))
    return Addresses(profile, key_manager)


def _take(call: SubmittedCall, store: Store) -> None:
    """Choose the policy that pays, take the slot and store the deployment; sign it if the signer is remote."""
    named = call.sponsor and call.sponsor.slug
    try:
        for step in submission.take_slot(call):
            if step is Step.OFFER:
                (call.offer,) = offers_for([call.bill.wanted])
            elif step is Step.ACCEPTANCE:
                _accept(call, store)
    finally:
        if call.offer and named and call.sponsor_refusal:
            # The sponsor's own server asked, so only the count is kept.
            refusals.count([(named, call.sponsor_refusal.code)], now=call.now)
    if call.slot.outcome == "repeated":
        unsigned.finish_repeated(int(call.slot.hold_id or 0))
    elif get_signer().is_remote:
        (outcome,) = unsigned.complete([unsigned.of_call(call)])
        if isinstance(outcome, Exception):
            raise outcome


def _accept(call: SubmittedCall, store: Store) -> None:
    """Open the account and take the slot in one transaction, of which nothing stays unless the slot is taken."""
    signer = get_signer()
    policy = acceptance.limits_of([call], signer)
    nobody = call.caller
    try:
        with transaction.atomic(durable=True):
            user = user_of_profile(profile_address=call.caller.profile_address)
            call.caller = replace(nobody, user_id=user.pk)
            acceptance.take_and_store([call], signer, policy)
            if call.slot.outcome in {"taken", "repeated"}:
                store(user, call.slot.hold_id)
            else:
                transaction.set_rollback(True)
    except OperationalError as error:
        if not db.is_lock_timeout(error):
            raise
        raise locked() from error


@transaction.atomic(durable=True)
def _store_repeat(call: SubmittedCall, store: Store) -> None:
    """Store the request for a profile whose deployment is in progress or has succeeded."""
    user = User.objects.get(pk=call.caller.user_id)
    earlier = active_transaction(user_id=user.pk, identity=call.identity)
    store(user, None if earlier is None else earlier.hold_id)
