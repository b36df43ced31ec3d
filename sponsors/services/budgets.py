"""A sponsor's budget: the most that it pays in a UTC day and month. Two members of staff change it."""

from django.db import transaction

from credits.models import CreditAccount
from gateway.staff import approval_kinds, approvals
from gateway.staff.approval_kinds import Done, Kind, RequestOutdated
from gateway.staff.models import ApprovalRequest
from sponsors.models import BudgetUse, Sponsor
from users.models import User


def request(
    *, sponsor: Sponsor, day: int | None, month: int | None, key: str, actor: User, reason: str
) -> ApprovalRequest:
    """
    Request another budget in credits; None for both ends it, and staff decide about each policy again.

    Raises:
        ReasonRequired: the reason is blank.
        RequestConflict: the key names another request.
        ValueError: only one part is given, or a part is below 1.
    """
    parts = [part for part in (day, month) if part is not None]
    if len(parts) == 1 or any(part < 1 for part in parts):
        raise ValueError("a budget has two parts, each of at least one credit")
    return approvals.ask(
        kind=SET_BUDGET,
        actor=actor,
        reason=reason,
        key=key,
        row=sponsor,
        payload={
            "budget": text_of(day, month),
            "before": text_of(sponsor.day_credits, sponsor.month_credits),
        },
        changes={
            "credits a day": (str(sponsor.day_credits or ""), str(day or "")),
            "credits a month": (str(sponsor.month_credits or ""), str(month or "")),
        },
    )


def text_of(day: int | None, month: int | None) -> str:
    """Return a budget as the nightly comparison reads it (`causes.sql`)."""
    return "-" if day is None else f"{day}/{month}"


@transaction.atomic
def _set(approval: ApprovalRequest) -> Done:
    # The account's row is the lock of what the budget counts.
    sponsor_id = int(approval.object_id)
    CreditAccount.objects.select_for_update(no_key=True).get(sponsor_id=sponsor_id)
    sponsor = Sponsor.objects.select_for_update(no_key=True).get(pk=sponsor_id)
    if text_of(sponsor.day_credits, sponsor.month_credits) != approval.payload["before"]:
        raise RequestOutdated("The budget has changed since the request.")
    text = str(approval.payload["budget"])
    day, month = (None, None) if text == "-" else map(int, text.split("/"))
    sponsor.day_credits, sponsor.month_credits = day, month
    sponsor.save(update_fields=["day_credits", "month_credits"])
    # Calls without a budget were not counted; the next call counts them.
    BudgetUse.objects.filter(sponsor=sponsor).delete()
    return Done(f"{sponsor.name} has a budget of {text} credits a day and month.", sponsor)


SET_BUDGET = approval_kinds.register(
    Kind(
        name="set_sponsor_budget",
        title="Set a sponsor's budget",
        asks="sponsors.add_policyversion",
        decides="sponsors.decide_policyversion",
        carry_out=_set,
    )
)
