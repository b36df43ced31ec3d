"""What support does about people and their sessions, each through its service."""

from django.utils.timezone import now

from credits.admin.actions import adjust_credits, grant_modifier
from gateway.common.decisions import Decision, ReasonedAction
from gateway.common.owner import ProfileOwner
from users.models import SignInSession, User
from users.services import sessions


def _itself(row: User) -> ProfileOwner:
    return row


ADJUST_CREDITS = adjust_credits(_itself)
GRANT_MODIFIER = grant_modifier(_itself)


def _end(row: SignInSession, decision: Decision) -> str:
    ended = sessions.end(session_id=row.pk, reason=SignInSession.Reason.STAFF, now=now())
    return "It is ended." if ended else "It had ended before."


END_SESSION = ReasonedAction(
    name="revoke",
    label="End the session",
    permission="users.revoke_signinsession",
    effect=lambda row: "All its tokens end at once; the wallet must sign in again.",
    run=_end,
    applies_to=lambda row: row.revoked_at is None,
)


def _end_all(row: User, decision: Decision) -> str:
    return f"{sessions.end_all(user_id=row.pk, reason=SignInSession.Reason.STAFF, now=now())} sessions are ended."


END_SESSIONS = ReasonedAction(
    name="revoke_sessions",
    label="End all sessions",
    permission="users.revoke_signinsession",
    effect=lambda row: "The tokens of every session end at once; the wallet must sign in again.",
    run=_end_all,
    applies_to=lambda row: row.sign_in_sessions.living(now=now()).exists(),
)
