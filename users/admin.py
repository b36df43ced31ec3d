"""Sign-in sessions in the admin: find them by address, end one or all of a user. Trusted implementations are edited."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.utils.timezone import now

from gateway.admin import navigation
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.base import ReadOnlyAdmin, StaffAdmin
from gateway.common.fields import checksum
from users.models import SignInSession, TrustedImplementation, User
from users.services import sessions

navigation.register("People", {"users.User": "group", "users.SignInSession": "login"})
navigation.register("Relay", {"users.TrustedImplementation": "verified_user"})


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
    applies_to=lambda row: row.sign_in_sessions.active(now=now()).exists(),
)


def as_address(term: str) -> str | None:
    """Return the searched text as an address, so that the search uses the column's own index."""
    try:
        return checksum(term)
    except ValueError:
        return None


@admin.register(SignInSession)
class SignInSessionAdmin(ReasonedActions, ReadOnlyAdmin):
    """Who signed in when and by which controller, and the button that ends it."""

    list_display = ("user", "controller_address", "created_at", "refreshed_at", "expires_at", "revoked_at")
    list_filter = ("revoked_reason",)
    list_select_related = ("user",)
    search_fields = ("controller_address",)
    search_help_text = "The address of a profile or of a controller, in any casing."
    ordering = ("-created_at",)
    staff_actions = (END_SESSION,)

    def find_rows(self, rows: QuerySet[SignInSession], term: str) -> QuerySet[SignInSession] | None:
        address = as_address(term)
        by_address = Q(user__profile_address=address) | Q(controller_address=address)
        return rows.filter(by_address) if address else None


@admin.register(TrustedImplementation)
class TrustedImplementationAdmin(StaffAdmin[TrustedImplementation]):
    list_display = ("name", "kind", "address", "code_hash", "is_active")
    list_filter = ("kind", "is_active")
    ordering = ("kind", "name")
