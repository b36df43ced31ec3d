"""Support's actions that ban a person and lift the ban. Their pages say what happens to the money."""

from credits.queries import account_of
from gateway.admin.actions import Decision, ReasonedAction
from gateway.common import clock
from payments.models import Subscription
from payments.services import top_ups
from users.models import Ban, User
from users.rules import refusal_of_ban
from users.services import bans


def _effect(row: User) -> str:
    account = account_of(row)
    sentences = [
        "From now on, the person cannot sign in, send calls (LSP-15 included), buy, check in, or act for sponsors.",
        "The person's API keys are refused.",
        f"{account.held:,} credits are held by calls in progress, which are completed and charged.",
        f"The other {account.available:,} credits stay on the account. They cannot be used, and expire as before.",
    ]
    if top_ups.in_force(row).exists():
        sentences.append("Automatic top-up is turned off.")
    if Subscription.objects.live().filter(user=row).exists():
        sentences += [
            "The subscription is cancelled within minutes: at the end of the paid period, or at once without one.",
            "The last payment is not refunded; use Refund for that.",
        ]
    sentences.append(
        "Payments and earnings that arrive later are still credited. A colleague can lift the ban."
    )
    return " ".join(sentences)


def _ban(row: User, decision: Decision) -> str:
    bans.ban(user=row, actor=decision.actor, reason=decision.reason, now=clock.now())
    return "The person is banned."


BAN = ReasonedAction(
    name="ban",
    label="Ban",
    permission="users.ban_user",
    effect=_effect,
    run=_ban,
    applies_to=lambda row: not refusal_of_ban(is_staff=row.is_staff, is_active=row.is_active),
)


def _open(row: User) -> Ban | None:
    return Ban.objects.open().filter(user=row).select_related("banned_by").first()


def _effect_of_lifting(row: User) -> str:
    ban = _open(row)
    why = f"{ban.banned_by} banned this person on {ban.banned_at:%Y-%m-%d}: {ban.reason} " if ban else ""
    return (
        f"{why}The person can sign in again and use the credits that are left. Automatic top-up and a cancelled "
        "subscription stay off until the person turns them on."
    )


def _lift(row: User, decision: Decision) -> str:
    bans.lift(user=row, actor=decision.actor, now=clock.now())
    return "The ban is lifted."


LIFT_BAN = ReasonedAction(
    name="lift_ban",
    label="Lift the ban",
    permission="users.ban_user",
    effect=_effect_of_lifting,
    run=_lift,
    applies_to=lambda row: not row.is_active and _open(row) is not None,
    refusal=lambda row, actor: bans.why_not_lift(_open(row), actor),
)
