"""Trusted contract code: the implementations whose profiles the service relays for."""

import uuid
from collections.abc import Sequence

from django.conf import settings
from django.utils import timezone

from gateway.chain.client import get_chain_client
from gateway.chain.config import get_chain, home, on_home
from gateway.staff import approvals
from gateway.staff.form_kinds import form_kind
from gateway.staff.models import ApprovalRequest
from signer.contracts import code_hash
from users.models import FoundCode, TrustedImplementation, User
from users.queries import addresses_to_compare, are_trusted, trusted_codes

SAVE = form_kind(
    name="save_trusted_code",
    title="Change trusted code",
    model=TrustedImplementation,
    asks="users.change_trustedimplementation",
    decides="users.decide_trustedimplementation",
)


def trusts_any_code() -> bool:
    """Return whether the service also accepts profiles with untrusted code (`CHAIN_TRUST=open`)."""
    return bool(settings.CHAIN_TRUST == "open")


def trusts(codes: frozenset[str], *, profile_code: str, key_manager_code: str) -> bool:
    """
    Return whether the current chain trusts the codes of both contracts, given by name; `codes` are its `trusted_codes`.

    On another chain than home, a trusted address is compared with home before its first use. That reads both chains,
    so call this function outside any transaction.

    Raises:
        NodeUnavailable: too few nodes of one of the chains responded, or they disagree.
    """
    if are_trusted(codes, profile_code=profile_code, key_manager_code=key_manager_code):
        return True
    if get_chain() is home():
        return False
    compare_with_home(addresses_to_compare([profile_code, key_manager_code]))
    # They may also have been compared since `codes` were read.
    return are_trusted(trusted_codes(), profile_code=profile_code, key_manager_code=key_manager_code)


def compare_with_home(addresses: Sequence[str]) -> list[str]:
    """
    Read the code at the addresses on the current chain and at home; return those with other code than at home.

    Addresses without code on one of the chains are not kept, because it may still be deployed there.

    Raises:
        NodeUnavailable: see `trusts`.
    """
    return [address for address in addresses if _differ(_found(address), _found_at_home(address))]


def _differ(here: str, at_home: str) -> bool:
    return bool(here and at_home) and here != at_home


@on_home()
def _found_at_home(address: str) -> str:
    return _found(address)


def _found(address: str) -> str:
    """Read the code, keep its hash and return it; empty without code."""
    code = get_chain_client().read_code(address=address)
    if not code:
        return ""
    FoundCode.objects.update_or_create(
        chain_id=get_chain().id,
        address=address,
        defaults={"code_hash": code_hash(code), "found_at": timezone.now()},
    )
    return code_hash(code)


def request(*, kind: str, address: str, name: str, actor: User, reason: str) -> ApprovalRequest | None:
    """
    Request trust in the implementation at `address`; return None if there is a row for it, trusted or not.

    Raises:
        PermissionDenied, ReasonRequired: see `approvals.ask`.
    """
    if TrustedImplementation.objects.filter(kind=kind, address=address).exists():
        return None
    values = {"kind": kind, "address": address, "name": name}
    return approvals.ask(
        kind=SAVE,
        actor=actor,
        reason=reason,
        key=f"trust:{uuid.uuid4()}",
        row=TrustedImplementation(**values),
        payload={"values": values, "before": {}},
        changes={field: ("", value) for field, value in values.items()},
    )
