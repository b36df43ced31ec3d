"""Trusted contract code: which profiles the service pays gas for."""

import uuid

from django.conf import settings
from django.db.models import Q

from gateway.admin import approvals
from gateway.admin.approval_forms import form_kind
from gateway.admin.models import ApprovalRequest
from gateway.common import db
from signer.contracts import code_name
from users.models import TrustedImplementation, User

SAVE = form_kind(
    name="save_trusted_code",
    title="Change trusted code",
    model=TrustedImplementation,
    asks="users.change_trustedimplementation",
    decides="users.decide_trustedimplementation",
)


def code_is_trusted(*, profile_code: bytes, key_manager_code: bytes) -> bool:
    """Return whether both runtime codes belong to active trusted implementations."""
    named = {"profile": code_name(profile_code), "key_manager": code_name(key_manager_code)}
    (kinds,) = db.only_row(_TRUSTED_KINDS, named)
    return bool(kinds == len(TrustedImplementation.Kind))


def profile_code_is_trusted(profile_code: bytes) -> bool:
    """Return whether the runtime code belongs to an active trusted implementation of profiles."""
    name = code_name(profile_code)
    trusted = TrustedImplementation.objects.filter(is_active=True, kind=TrustedImplementation.Kind.PROFILE)
    return trusted.filter(Q(address=name) | Q(code_hash=name)).exists()


_TRUSTED_KINDS = """
SELECT count(DISTINCT kind) FROM users_trustedimplementation
WHERE is_active AND (kind = 'profile' AND %(profile)s IN (address, code_hash)
                     OR kind = 'key-manager' AND %(key_manager)s IN (address, code_hash))
"""


def trusts_any_code() -> bool:
    """Return whether profiles of any code are served as well (`CHAIN_TRUST=open`)."""
    return bool(settings.CHAIN_TRUST == "open")


def trust(*, kind: str, address: str, name: str) -> bool:
    """Trust the implementation at `address`; False where it was trusted before. A deactivated one stays deactivated."""
    _, created = TrustedImplementation.objects.get_or_create(
        kind=kind, address=address, defaults={"name": name}
    )
    return created


def request(*, kind: str, address: str, name: str, actor: User, reason: str) -> ApprovalRequest | None:
    """
    Ask that the implementation at `address` is trusted; None where there is a row for it, trusted or not.

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
