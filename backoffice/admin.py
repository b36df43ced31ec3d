"""Admin pages that need more than one package: users, their accounts, and reconciliation runs."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Greatest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import now
from unfold.widgets import UnfoldAdminTextareaWidget

from backoffice.bans import BAN, LIFT_BAN
from backoffice.front_page import FIGURES_NEED
from backoffice.person import person_of
from backoffice.troubles import troubles_of
from credits.admin import CreditAccountAdmin, adjust_credits
from credits.models import CreditAccount, ReconciliationRun
from gateway.admin import columns
from gateway.admin.actions import Decision, ReasonedAction, ReasonedActions
from gateway.admin.approval_forms import ApprovedForm
from gateway.admin.base import ReadOnlyAdmin, StaffAdmin
from gateway.admin.mixins import staff_of
from gateway.admin.search import address_like
from gateway.common.tasks import enqueue_now
from gateway.staff import audit
from payments.models import Subscription
from relay.models import RelayTransaction
from rewards.admin import grant_modifier
from users import admin as users_admin
from users.admin import as_address
from users.models import Ban, Note, SignInSession, User
from users.services.profile_cards import card_of


def _itself(row: User) -> User:
    return row


ADJUST_CREDITS = adjust_credits(_itself)
GRANT_MODIFIER = grant_modifier(_itself)


_MOST_NOTES = 50
_HELP = {"is_active": "Without it, this person cannot sign in."}


class NoteForm(forms.Form):
    text = forms.CharField(
        label="New note",
        max_length=2_000,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 2}),
        help_text="Stored with your name. It cannot be changed, and is erased with the account.",
    )


@admin.register(User)
class UserAdmin(ApprovedForm, ReasonedActions, StaffAdmin[User]):
    """Staff accounts and roles change after approval; of a wallet user, staff can only open or close the account."""

    saves = users_admin.SAVE_STAFF
    list_display = ("name", "credits", "plan", "last_seen", "date_joined")
    list_filter = ("is_active", "is_staff")
    search_fields = ("username__istartswith", "email__istartswith")
    search_help_text = "A profile address in any casing, whole or in part, or the start of a staff name."
    ordering = ("-date_joined",)
    staff_actions = (
        ADJUST_CREDITS,
        GRANT_MODIFIER,
        users_admin.END_SESSIONS,
        BAN,
        LIFT_BAN,
        users_admin.RESET_PASSWORD,
        users_admin.MAKE_LINK,
        users_admin.RESET_SECOND_FACTOR,
        users_admin.LOCK_OUT,
    )

    def shown_rows(self, rows: QuerySet[User]) -> QuerySet[User]:
        session = SignInSession.objects.filter(user=OuterRef("pk")).order_by("-refreshed_at")
        call = RelayTransaction.objects.filter(user=OuterRef("pk")).order_by("-pk")
        seen_at = Greatest(
            Subquery(session.values("refreshed_at")[:1]),
            Subquery(call.values("created_at")[:1]),
            "last_login",
        )
        live = Subscription.objects.live().kept_first()
        return (
            super()
            .shown_rows(rows)
            .select_related("card", "credit_account")
            .defer("card__picture")
            .prefetch_related(Prefetch("subscriptions", live, to_attr="live_subscriptions"))
            .annotate(seen_at=seen_at)
        )

    @admin.display(ordering="username")
    def name(self, row: User) -> SafeString | str:
        """Return the name as wallets show it, or the short address; of staff the username."""
        address = row.profile_address or ""
        card = getattr(row, "card", None)
        name = (
            f"{card.name}#{address[2:6]}"
            if card and card.name
            else columns.short(address)
            if address
            else row.username
        )
        state = "" if row.is_active else columns.badge("closed")
        return format_html("{} {}", name, state or (columns.badge("staff") if row.is_staff else ""))

    @admin.display
    def credits(self, row: User) -> SafeString | str:
        account = getattr(row, "credit_account", None)
        return columns.number(account.available if account else None)

    @admin.display
    def plan(self, row: Any) -> SafeString | str:
        """Return the price of the subscription, and its status unless it is active."""
        plan: Subscription | None = next(iter(row.live_subscriptions), None)
        if plan is None:
            return columns.NOTHING
        price = f"{Decimal(plan.amount_minor) / 100:,.2f} {plan.currency.upper()} a {plan.interval}"
        is_active = plan.status == Subscription.Status.ACTIVE
        return format_html("{} {}", price, "" if is_active else columns.badge(plan.status))

    @admin.display(empty_value="never")
    def last_seen(self, row: Any) -> datetime | None:
        seen_at: datetime | None = row.seen_at
        return seen_at

    def find_rows(self, rows: QuerySet[User], term: str) -> QuerySet[User] | None:
        address = as_address(term)
        if address is not None:
            return rows.filter(profile_address=address)
        part = address_like(term)
        # A staff username may look like part of an address.
        return rows.filter(part | Q(profile_address=None, username__istartswith=term)) if part else None

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.note_view)
        return [path("<int:user_id>/note/", view, name="users_user_note"), *super().get_urls()]

    def note_view(self, request: HttpRequest, user_id: int) -> HttpResponse:
        """Show the form for a note about the person, or store the note; the person's page has the same form."""
        if not request.user.has_perm("users.add_note"):
            raise PermissionDenied
        person = User.objects.filter(pk=user_id).exclude(profile_address=None).first()
        if person is None:
            raise Http404
        form = NoteForm(request.POST or None)
        if form.is_valid():
            Note.objects.create(person=person, author=staff_of(request), text=form.cleaned_data["text"])
            # The log must not contain the note, because the log stays when the person is erased.
            audit.record(actor=staff_of(request), row=person, action="add note")
            messages.success(request, "The note was saved.")
            return HttpResponseRedirect(f"{self.page_url('change', person.pk)}#notes")
        context = {"title": f"Note on {person}", "opts": self.opts, "note_form": form, "person_id": person.pk}
        site = self.admin_site.each_context(request)
        return TemplateResponse(request, "backoffice/note.html", {**site, **context})

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return ((None, {"fields": ("username", "groups")}),)
        if obj.profile_address:
            return ((None, {"fields": ("profile_address", "shown_name", "is_active", "date_joined")}),)
        # Leaves out individual permissions, because only groups have permissions, and password hashes.
        shown = ("username", "is_active", "is_staff", "is_superuser", "groups", "date_joined", "last_login")
        return ((None, {"fields": shown}),)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, help_texts=_HELP, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fixed = ("profile_address", "shown_name", "date_joined", "last_login")
        # Staff lift a ban by its action, and not by the account's own field.
        is_banned = obj is not None and Ban.objects.open().filter(user=obj).exists()
        return ("is_active", *fixed) if is_banned else fixed

    @admin.display(description="profile name", empty_value="none read")
    def shown_name(self, row: User) -> str | None:
        card = card_of(row)
        return (card and card.name) or None

    def takes_approval(self, row: User | None) -> bool:
        return row is None or row.profile_address is None

    def form_context(self, request: HttpRequest, row: User | None) -> dict[str, Any]:
        context = super().form_context(request, row)
        if row is not None and row.profile_address and request.user.has_perms(FIGURES_NEED):
            context["person"] = person = person_of(user=row, now=now())
            context["troubles"] = troubles_of(person, now())
            context["notes"] = row.notes.select_related("author")[:_MOST_NOTES]
            if request.user.has_perm("users.add_note"):
                context |= {"note_form": NoteForm(), "person_id": row.pk}
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
        # Ledger rows reference users, so an account is closed and not deleted.
        return False


def _compare_with_stripe(row: ReconciliationRun, decision: Decision) -> str:
    enqueue_now("payments.reconcile")
    return "A worker runs the comparison; the run appears in this list."


RUN_RECONCILIATION = ReasonedAction(
    name="run",
    label="Compare with Stripe now",
    permission="credits.run_stripe_reconciliation",
    subject="Stripe against our books",
    effect=lambda _: "A worker compares the usual window with Stripe. It changes nothing.",
    run=_compare_with_stripe,
    reaches_out=True,
)


@admin.register(ReconciliationRun)
class ReconciliationRunAdmin(ReasonedActions, ReadOnlyAdmin):
    """All reconciliation runs, scheduled or manual; a separate page shows the last run of each kind."""

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
