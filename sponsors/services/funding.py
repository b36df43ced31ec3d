"""Sponsors and their credits: opening an account, the alarm, and adjustments by staff; large ones need approval."""

from django.db import transaction

from credits.models import LARGEST_ADJUSTMENT, CreditAccount
from credits.services import entries
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import CREDITS, Done, Kind
from gateway.staff.models import ApprovalRequest
from sponsors.models import Sponsor
from users.models import User


@transaction.atomic
def open_account(sponsor: Sponsor) -> CreditAccount:
    """
    Store a new sponsor, with an empty account.

    Raises:
        IntegrityError: the slug is taken.
    """
    sponsor.save(force_insert=True)
    return CreditAccount.objects.create(sponsor=sponsor)


def set_alarm(sponsor: Sponsor, *, credits: int | None) -> None:
    """Set the available credits below which the sponsor's members are notified; None turns the alarm off."""
    sponsor.alarm_credits = credits
    sponsor.save(update_fields=["alarm_credits"])


def request(*, sponsor: Sponsor, credits: int, key: str, actor: User, reason: str) -> ApprovalRequest:
    """
    Request an adjustment of a sponsor's credits, up or down. It is posted at once if it is within one person's limit.

    A repeated key returns the first request.

    Raises:
        ReasonRequired: the reason is blank.
        AboveCeiling: the amount exceeds the ceiling.
        RequestConflict: the key names another request.
        ValueError: `credits` is zero, or exceeds `LARGEST_ADJUSTMENT` in either direction.
    """
    if not 1 <= abs(credits) <= LARGEST_ADJUSTMENT:
        raise ValueError("an adjustment must be at least one credit and fit into JSON")
    balance = sponsor.credit_account.balance
    return approvals.ask(
        kind=FUND,
        actor=actor,
        reason=reason,
        key=key,
        row=sponsor,
        amount=abs(credits),
        payload={"credits": credits},
        changes={"credits": ("", f"{credits:+d}"), "balance": (str(balance), str(balance + credits))},
    )


def _post(approval: ApprovalRequest) -> Done:
    sponsor, moved = Sponsor.objects.get(pk=approval.object_id), int(approval.payload["credits"])
    entry = entries.adjust_sponsor(
        sponsor_id=sponsor.pk,
        credits=moved,
        key=f"approval:{approval.pk}",
        actor=approval.requested_by,
        reason=approval.reason,
    )
    return Done(f"{moved:+d} credits were posted.", sponsor, entry)


FUND = approval_kinds.register(
    Kind(
        name="fund_sponsor",
        title="Adjust a sponsor's credits",
        asks="sponsors.fund_sponsor",
        decides="credits.decide_adjustment",
        pool=CREDITS,
        carry_out=_post,
    )
)
