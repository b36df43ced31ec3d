"""
Sponsors that people open by themselves, and what their owners change alone.

Such a sponsor has a budget of a day and of a month, which `sponsors_pay` enforces over all its policies, whatever their
terms. So its owners may write terms and name signers of vouchers without staff. A larger budget takes two members of
staff (`sponsors.services.budgets`).

No sponsor pays without a person who answers for it: the service freezes those of a person who is banned, and those
whose last owner has deleted the account.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q

from gateway.common import db
from gateway.staff import audit
from sponsors.errors import (
    OpeningsUsed,
    SelfServiceOff,
    SponsorNameTaken,
    StaffDecide,
    TermsRefused,
    TooManySponsors,
)
from sponsors.models import Member, Policy, PolicyVersion, Purpose, Sponsor, VoucherSigner
from sponsors.services import funding, members, policies, refusals, signers
from users.errors import AccountBanned
from users.models import User

# A call is checked against each of them.
MOST_POLICIES, MOST_SIGNERS = 10, 10
_DAY = timedelta(hours=24)
# Openings wait for each other, so that none is counted too late.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('sponsors.self_service', 0))::text"
_TERMS = (
    *("profiles", "share_percent", "call_credits", "user_day_credits", "user_credits", "user_calls"),
    *("window_seconds", "window_credits", "campaign_credits"),
)


@transaction.atomic
def open_sponsor(*, user: User, slug: str, name: str, now: datetime) -> Sponsor:
    """
    Open a sponsor with an empty account and the budget of new ones; the user becomes its owner.

    Raises:
        SelfServiceOff: the operator has turned this off.
        AccountBanned: the user was banned a moment ago.
        TooManySponsors, OpeningsUsed: the profile, or all together, have opened as many as they may.
        SponsorNameTaken: another sponsor has the name.
    """
    if not settings.SPONSOR_SELF_SERVICE:
        raise SelfServiceOff("Ask the operator of this service to open a sponsor for you.")
    # A ban takes the same lock: it either comes first, or freezes the new sponsor.
    if not User.objects.select_for_update(no_key=True).get(pk=user.pk).is_active:
        raise AccountBanned("The account is closed.")
    db.all_rows(_LOCK, {})
    _require_place(user, now)
    sponsor = Sponsor(
        slug=slug,
        name=name,
        opened_by=user,
        day_credits=settings.SPONSOR_SELF_SERVICE_DAY_CREDITS,
        month_credits=settings.SPONSOR_SELF_SERVICE_MONTH_CREDITS,
    )
    try:
        with transaction.atomic():
            funding.open_account(sponsor)
    except IntegrityError as error:
        if db.violated_constraint(error) != "sponsors_sponsor_slug_key":
            raise
        raise SponsorNameTaken(f"A sponsor {slug} exists already.") from error
    budget = f"{sponsor.day_credits}/{sponsor.month_credits}"
    audit.record(actor=user, row=sponsor, action="open a sponsor", changes={"budget": ("", budget)})
    members.put(
        sponsor=sponsor, profile_address=str(user.profile_address), role=Member.Role.OWNER, actor=user
    )
    return sponsor


def _require_place(user: User, now: datetime) -> None:
    opened = Sponsor.objects.filter(opened_by__isnull=False)
    most = settings.SPONSOR_SELF_SERVICE_PER_PROFILE
    if opened.filter(opened_by=user).count() >= most:
        raise TooManySponsors(f"A profile can open {most} sponsors.", limit=most)
    recent = opened.filter(created_at__gt=now - _DAY).order_by("-created_at")
    times = list(recent.values_list("created_at", flat=True)[: settings.SPONSOR_SELF_SERVICE_PER_DAY])
    if len(times) == settings.SPONSOR_SELF_SERVICE_PER_DAY:
        wait = int((times[-1] + _DAY - now).total_seconds()) + 1
        raise OpeningsUsed("As many sponsors were opened today as the operator allows.", retry_after=wait)


def _lock_with_budget(sponsor: Sponsor) -> None:
    """
    Lock the sponsor until the transaction ends, for a change by an owner.

    Raises:
        StaffDecide: the sponsor has no budget, so staff decide about the change.
    """
    members.lock(sponsor)
    sponsor.refresh_from_db(fields=["day_credits"])
    if not sponsor.has_budget:
        raise StaffDecide("Ask the operator's staff: two of them decide about policies without a budget.")


@transaction.atomic
def save_terms(*, sponsor: Sponsor, name: str, terms: Mapping[str, Any], actor: User) -> PolicyVersion:
    """
    Store the terms as the newest version of the sponsor's policy with this name, which is made if there is none.

    Raises:
        StaffDecide: the sponsor has no budget.
        TermsRefused: the terms contradict each other, or there are too many policies.
    """
    _lock_with_budget(sponsor)
    policy = Policy.objects.filter(sponsor=sponsor, name=name).first() or _new_policy(sponsor, name)
    version = PolicyVersion(policy=policy, created_by=actor, **terms)
    try:
        policies.save_version(version, {})
    except ValidationError as error:
        raise TermsRefused(" ".join(error.messages)) from error
    audit.record(actor=actor, row=version, action="write terms", changes={"terms": ("", _summary(version))})
    return version


def _new_policy(sponsor: Sponsor, name: str) -> Policy:
    last = list(
        Policy.objects.filter(sponsor=sponsor).order_by("-position").values_list("position", flat=True)
    )
    if len(last) >= MOST_POLICIES:
        raise TermsRefused(f"A sponsor has at most {MOST_POLICIES} policies.")
    return Policy.objects.create(sponsor=sponsor, name=name, position=last[0] + 1 if last else 0)


def _summary(version: PolicyVersion) -> str:
    """Return the terms as the nightly comparison writes them (`causes.sql`)."""
    values = [getattr(version, name) for name in _TERMS]
    limits = _joined(values[3:])
    numbers = [version.window_calls, version.campaign_calls, version.origin_calls, version.chain_id]
    if version.purpose != Purpose.CALLS or any(numbers):
        limits += " " + _joined([version.purpose, *numbers])
    if version.first_credits:
        chains = ",".join(map(str, version.first_chain_ids))
        limits += f" first {version.first_credits}/{version.first_days}" + (f"/{chains}" if chains else "")
    return " ".join(["policy", str(version.policy_id), *map(str, values[:3]), limits])


def _joined(values: Sequence[object]) -> str:
    return "/".join("-" if value is None else str(value) for value in values)


@transaction.atomic
def switch(*, policy: Policy, is_enabled: bool, actor: User) -> None:
    """
    Switch a policy on or off from the next call on.

    Raises:
        StaffDecide: the sponsor has no budget, or staff have switched the policy off.
    """
    _lock_with_budget(policy.sponsor)
    # Staff who switch the policy off at this moment hold its row until their entry in the audit log is written.
    Policy.objects.select_for_update(no_key=True).get(pk=policy.pk)
    if is_enabled and _is_off_by_staff(policy):
        raise StaffDecide("The operator's staff have switched the policy off. Ask them.")
    policies.enable(policy, is_enabled=is_enabled)
    states = ("off", "on") if is_enabled else ("on", "off")
    audit.record(actor=actor, row=policy, action="switch a policy", changes={"state": states})


def _is_off_by_staff(policy: Policy) -> bool:
    entries = LogEntry.objects.filter(
        content_type=ContentType.objects.get_for_model(Policy),
        object_id=str(policy.pk),
        change_message__regex='"action": "switch_(on|off)"',
    )
    newest = entries.order_by("-pk").first()
    return newest is not None and audit.details_of(newest)["action"] == "switch_off"


@transaction.atomic
def add_signer(*, sponsor: Sponsor, address: str, actor: User) -> VoucherSigner:
    """
    Accept vouchers that this address signs; an address that is accepted already stays.

    Raises:
        StaffDecide: the sponsor has no budget.
        TermsRefused: there are too many signers.
    """
    _lock_with_budget(sponsor)
    active = VoucherSigner.objects.filter(sponsor=sponsor, removed_at=None)
    known = active.filter(address=address).first()
    if known is not None:
        return known
    if active.count() >= MOST_SIGNERS:
        raise TermsRefused(f"A sponsor has at most {MOST_SIGNERS} signers of vouchers.")
    signer = VoucherSigner(sponsor=sponsor, address=address, created_by=actor)
    signers.save(signer, {})
    audit.record(actor=actor, row=signer, action="add a signer", changes={"address": ("", signer.address)})
    return signer


@transaction.atomic
def remove_signer(*, signer: VoucherSigner, actor: User) -> None:
    """Refuse the signer's vouchers from the next call on."""
    signers.remove(signer)
    changes = {"address": (signer.address, "")}
    audit.record(actor=actor, row=signer, action="remove a signer", changes=changes)


def freeze_of_banned(user: User, now: datetime) -> None:
    """Freeze the sponsors opened without staff that a banned person has opened or owns; staff end the freeze."""
    theirs = Q(opened_by=user) | Q(members__user=user, members__role=Member.Role.OWNER)
    _freeze(theirs)


def forget(user: User) -> None:
    """
    End the memberships of a person whose account is deleted, and delete what sponsors have refused.

    A sponsor that a person has opened is frozen if it has no owner then. Staff add an owner and end the freeze.
    """
    sponsors = list(Sponsor.objects.filter(members__user=user))
    members.forget(user)
    refusals.forget(user)
    _freeze(Q(pk__in=[sponsor.pk for sponsor in sponsors]) & ~Q(members__role=Member.Role.OWNER))


def _freeze(which: Q) -> None:
    ids = Sponsor.objects.filter(which, opened_by__isnull=False, is_frozen=False).values_list("pk", flat=True)
    Sponsor.objects.filter(pk__in=list(ids)).update(is_frozen=True)
