"""The sidebar: every list of the admin, in groups that staff recognise."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

from backoffice import reconciliation

# Group, then model and icon. Models that are registered but not named here go to "System".
GROUPS: list[tuple[str, list[tuple[str, str]]]] = [
    ("People", [("users.User", "group"), ("users.SignInSession", "login")]),
    (
        "Credits",
        [
            ("credits.CreditAccount", "account_balance_wallet"),
            ("credits.CreditEntry", "receipt_long"),
            ("credits.CreditHold", "lock_clock"),
            ("credits.AdjustmentRequest", "rule"),
            ("credits.Allowance", "event_repeat"),
            ("rewards.Badge", "military_tech"),
            ("rewards.Progress", "stairs"),
            ("rewards.ExperienceEntry", "trending_up"),
            ("rewards.Modifier", "bolt"),
            ("credits.ReconciliationRun", "fact_check"),
        ],
    ),
    (
        "Relay",
        [
            ("relay.RelayTransaction", "sync_alt"),
            ("relay.Attempt", "outbox"),
            ("relay.Relayer", "key"),
            ("users.TrustedImplementation", "verified_user"),
        ],
    ),
    (
        "Payments",
        [
            ("payments.Customer", "badge"),
            ("payments.Subscription", "autorenew"),
            ("payments.Payout", "payments"),
            ("payments.Clawback", "undo"),
            ("payments.StripeEvent", "inbox"),
            ("payments.BillingOperation", "pending_actions"),
            ("payments.PayoutRate", "currency_exchange"),
        ],
    ),
    (
        "Check-in",
        [
            ("checkin.CheckIn", "casino"),
            ("checkin.DropTable", "table_chart"),
            ("checkin.DailySeed", "grain"),
        ],
    ),
    (
        "Ad networks",
        [
            ("earnings.AdNetwork", "hub"),
            ("earnings.Postback", "webhook"),
            ("earnings.NetworkUser", "alternate_email"),
        ],
    ),
    (
        "System",
        [
            ("gateway_admin.StaffAction", "history"),
            ("gateway_admin.Pause", "pause_circle"),
            ("auth.Group", "shield_person"),
            ("otp_totp.TOTPDevice", "phonelink_lock"),
            ("axes.AccessAttempt", "gpp_bad"),
            ("axes.AccessFailureLog", "report"),
            ("axes.AccessLog", "list_alt"),
        ],
    ),
]
_UNNAMED_ICON = "database"


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups that `request.user` may see, with a link to each list."""
    links = {
        model._meta.label: _link(model)
        for model, model_admin in admin.site._registry.items()
        if model_admin.has_view_permission(request)
    }
    groups: list[dict[str, Any]] = [
        {
            "title": title,
            "separator": True,
            "items": [{**links.pop(label), "icon": icon} for label, icon in places if label in links],
        }
        for title, places in GROUPS
    ]
    groups[-1]["items"].extend({**link, "icon": _UNNAMED_ICON} for link in links.values())
    return [{"items": _pages(request)}, *(group for group in groups if group["items"])]


def _pages(request: HttpRequest) -> list[dict[str, Any]]:
    pages = [{"title": "Overview", "icon": "monitoring", "link": reverse("admin:index")}]
    if reconciliation.may_be_opened(request):
        pages.append({"title": "Reconciliation", "icon": "balance", "link": reverse("admin:books")})
    return pages


def _link(model: type[Model]) -> dict[str, Any]:
    meta = model._meta
    title = str(meta.verbose_name_plural)
    return {
        "title": title[:1].upper() + title[1:],
        "link": reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"),
    }
