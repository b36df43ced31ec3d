"""Admin pages that need more than one package: users, their accounts, and reconciliation runs."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.timezone import now

from backoffice.front_page import FIGURES_NEED
from backoffice.person import person_of
from credits.admin import CreditAccountAdmin, adjust_credits
from credits.models import CreditAccount, ReconciliationRun
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import ReadOnlyAdmin, ReadOnlyInline, StaffAdmin
from gateway.admin.search import address_like
from gateway.common.tasks import enqueue_now
from rewards.admin import grant_modifier
from users import admin as users_admin
from users.admin import as_address
from users.models import SignInSession, User


def _itself(row: User) -> User:
    return row


ADJUST_CREDITS = adjust_credits(_itself)
GRANT_MODIFIER = grant_modifier(_itself)


class SignInSessionInline(ReadOnlyInline[SignInSession, User]):
    model = SignInSession
    fields = readonly_fields = (
        "controller_address",
        "created_at",
        "refreshed_at",
        "expires_at",
        "revoked_at",
    )
    ordering = ("-created_at",)
    show_change_link = True


@admin.register(User)
class UserAdmin(ApprovedForm, ReasonedActions, StaffAdmin[User]):
    """Accounts and roles of staff change when a second person agrees; of a wallet user only whether it is open."""

    saves = users_admin.SAVE_STAFF
    list_display = ("username", "profile_address", "is_active", "is_staff", "date_joined", "last_login")
    list_filter = ("is_active", "is_staff")
    search_fields = ("username__istartswith", "email__istartswith")
    search_help_text = "A profile address in any casing, whole or in part, or the start of a staff name."
    ordering = ("-date_joined",)
    inlines = (SignInSessionInline,)
    staff_actions = (
        ADJUST_CREDITS,
        GRANT_MODIFIER,
        users_admin.END_SESSIONS,
        users_admin.RESET_PASSWORD,
        users_admin.RESET_SECOND_FACTOR,
    )

    def find_rows(self, rows: QuerySet[User], term: str) -> QuerySet[User] | None:
        address = as_address(term)
        if address is not None:
            return rows.filter(profile_address=address)
        part = address_like(term)
        # The username of staff may look like a part of an address.
        return rows.filter(part | Q(profile_address=None, username__istartswith=term)) if part else None

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ((None, {"fields": ("username", "groups")}),)
        if obj.profile_address:
            return ((None, {"fields": ("profile_address", "is_active", "date_joined")}),)
        # Nobody has single permissions, and nobody is shown even the hash of a password.
        shown = ("username", "is_active", "is_staff", "is_superuser", "groups", "date_joined", "last_login")
        return ((None, {"fields": shown}),)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ("profile_address", "date_joined", "last_login")

    def takes_approval(self, row: User | None) -> bool:
        return row is None or row.profile_address is None

    def form_context(self, request: HttpRequest, row: User | None) -> dict[str, Any]:
        context = super().form_context(request, row)
        if row is not None and row.profile_address and request.user.has_perms(FIGURES_NEED):
            context["person"] = person_of(user=row, now=now())
        return context

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("users.manage_staff")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        of_wallets, of_staff = (
            request.user.has_perm(f"users.{name}") for name in ("change_user", "manage_staff")
        )
        if obj is None:
            return of_wallets or of_staff
        return of_wallets if obj.profile_address else of_staff

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The ledger keeps its people; an account is closed and not deleted.
        return False


def _compare_with_stripe(row: ReconciliationRun, decision: Decision) -> str:
    enqueue_now("payments.reconcile")
    return "A worker is asked to compare; the run appears in this list."


RUN_RECONCILIATION = ReasonedAction(
    name="run",
    label="Compare with Stripe now",
    permission="credits.run_stripe_reconciliation",
    subject="Stripe against our books",
    effect=lambda _: "A worker compares everything of the usual window with Stripe. It changes nothing.",
    run=_compare_with_stripe,
    reaches_out=True,
)


@admin.register(ReconciliationRun)
class ReconciliationRunAdmin(ReasonedActions, ReadOnlyAdmin):
    """Every comparison, by night, by hand or by command; a page of its own shows the last of each kind."""

    list_display = ("started_at", "finished_at", "kind", "result")
    list_filter = ("kind",)
    list_defer = ("findings",)
    ordering = ("-started_at",)
    staff_actions = (RUN_RECONCILIATION,)

    @admin.display(description="result")
    def result(self, run: ReconciliationRun) -> str:
        return "unfinished" if run.finished_at is None else f"{run.counts.get('findings', 0)} findings"


@admin.register(CreditAccount)
class AccountAdmin(CreditAccountAdmin):
    staff_actions = (*CreditAccountAdmin.staff_actions, grant_modifier(lambda account: account.user))
