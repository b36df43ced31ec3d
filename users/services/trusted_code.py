"""Trusted contract code: the implementations whose profiles the service relays for."""

import uuid

from django.conf import settings

from gateway.staff import approvals
from gateway.staff.form_kinds import form_kind
from gateway.staff.models import ApprovalRequest
from users.models import TrustedImplementation, User

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
