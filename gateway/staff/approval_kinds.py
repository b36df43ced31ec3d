"""Kinds of actions that need approval, their pools and errors, and the roles that decide them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth.models import Group
from django.db.models import Model

from gateway.common.errors import DomainError
from gateway.staff.models import ApprovalRequest

SUPERUSER = "superuser"


class AboveCeiling(DomainError):
    """Ceilings apply to everyone, even with approval."""

    code, title, status = "above-ceiling", "Above a ceiling", 422


class RequestConflict(DomainError):
    """The `key` already names another request of staff."""

    code, title, status = "request-conflict", "The key is taken", 409

    def __init__(self, *, key: str) -> None:
        super().__init__("This key was used before, with other content. Use a new key.", key=key)


class OwnRequest(DomainError):
    """Staff cannot decide their own requests."""

    code, title, status = "own-request", "Your own request", 403

    def __init__(self) -> None:
        super().__init__(
            "This is your own request. Another member of staff, with another role, has to decide it."
        )


class AnotherRoleDecides(DomainError):
    """Only a role that decides this kind, and that the requester does not have, can decide the request."""

    code, title, status = "another-role-decides", "Another role decides", 403


class RequestDecided(DomainError):
    """The request has been decided before, or it has expired."""

    code, title, status = "request-decided", "The request is decided", 409

    def __init__(self, *, became: str) -> None:
        super().__init__(f"This request is closed: {became}.")


class RequestOutdated(DomainError):
    """The row has changed since the request was made, or the request is no longer valid."""

    code, title, status = "request-outdated", "The request is outdated", 409


class ApprovalLimits(NamedTuple):
    """Limits per 24 hours without a second person, and ceilings even with approval; in the pool's unit."""

    actor: int
    person: int
    day: int
    ceiling: int
    ceiling_day: int


class Pool(NamedTuple):
    """The unit in which the limits of one or more kinds are counted, such as credits."""

    name: str
    unit: str
    verb: str = "give or take"
    # Whether amounts are in hundredths of the unit.
    is_money: bool = False

    def shown(self, amount: int) -> str:
        return f"{amount / 100:,.2f} {self.unit}" if self.is_money else f"{amount:,} {self.unit}"

    @property
    def limits(self) -> ApprovalLimits:
        return ApprovalLimits(**settings.APPROVAL_LIMITS[self.name])


CREDITS = Pool("credits", "credits")
BONUSES = Pool("bonuses", "percent-days")
REFUNDS = Pool("refunds", "of any currency", "refund", is_money=True)


class Done(NamedTuple):
    """
    The result of a request: a sentence, the row that the audit log names, and a further row that it created.

    For a request about a new row, `row` is the row that it created.
    """

    message: str
    row: Model
    made: Model | None = None


@dataclass(frozen=True, kw_only=True)
class Kind:
    """
    A kind of action that needs approval.

    `asks` and `decides` are full permissions. `carry_out` runs once, in the transaction of the decision. It locks the
    rows that it changes, and raises `RequestOutdated` if they have changed since the request. `check` raises
    `AboveCeiling`; it runs when the request is made and again before it is carried out. A kind without a `pool` or
    that `always_waits` waits for a second person whatever its amount.
    """

    name: str
    title: str
    asks: str
    decides: str
    carry_out: Callable[[ApprovalRequest], Done]
    check: Callable[[ApprovalRequest], None] = lambda approval: None
    pool: Pool | None = None
    always_waits: bool = False


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    _kinds[kind.name] = kind
    return kind


def kinds() -> list[Kind]:
    return list(_kinds.values())


def title_of(name: str) -> str:
    """Return the title of the kind with this name; the name itself of one that is no longer registered."""
    return next((kind.title for kind in kinds() if kind.name == name), name)


def kind_of(approval: ApprovalRequest) -> Kind:
    return _kinds[approval.kind]


# --- Roles


def others_who_decide(kind: Kind, roles: Collection[str]) -> str:
    """Return, in words, the roles that decide a request by someone with these roles."""
    return " or ".join(sorted(deciders(kind) - set(roles)))


def obstacle(approval: ApprovalRequest, actor: Any) -> DomainError | None:
    """Return why the actor may not decide the request, or None."""
    if approval.requested_by_id == actor.pk:
        return OwnRequest()
    deciding = decided_by(actor).get(approval.kind, set())
    if not deciding - set(approval.requested_roles):
        others = others_who_decide(kind_of(approval), approval.requested_roles)
        return AnotherRoleDecides(f"A role other than the requester's has to decide: {others}.")
    return None


def roles_of(actor: Any) -> set[str]:
    """Return the roles of a member of staff; superuser counts as a role."""
    return set(actor.groups.values_list("name", flat=True)) | ({SUPERUSER} if actor.is_superuser else set())


def deciders(kind: Kind) -> set[str]:
    """Return the roles that decide requests of the kind."""
    return set(_groups_with(kind.decides).values_list("name", flat=True)) | {SUPERUSER}


def decided_by(actor: Any) -> dict[str, set[str]]:
    """Return the kinds that the actor decides, by name, with the roles that let the actor decide. One statement."""
    if not actor.is_active:
        return {}
    of_roles = actor.groups.values_list(
        "name", "permissions__content_type__app_label", "permissions__codename"
    )
    held = {(name, f"{app}.{codename}") for name, app, codename in of_roles}
    superuser = {SUPERUSER} if actor.is_superuser else set()
    roles = {kind.name: {name for name, held_one in held if held_one == kind.decides} for kind in kinds()}
    return {name: deciding | superuser for name, deciding in roles.items() if deciding | superuser}


def _groups_with(permission: str) -> Any:
    app, codename = permission.split(".")
    return Group.objects.filter(
        permissions__content_type__app_label=app, permissions__codename=codename
    ).distinct()
