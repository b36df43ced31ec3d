"""The reconciliation page: the last comparisons of the ledger, Stripe and the chain."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from backoffice.cards import Card, age_of
from credits.models import ReconciliationRun
from gateway.admin.mixins import staff_of
from gateway.common import clock
from gateway.common.errors import WorkersUnreachable
from gateway.common.tasks import enqueue_now
from gateway.staff import audit

_SHOWN, _EARLIER = 50, 7
# The admin pages of the ids in a finding, for ids of our rows.
_PAGES = {
    "account": "credits_creditaccount",
    "call": "relay_relaytransaction",
    "entry": "credits_creditentry",
}


@dataclass(frozen=True, kw_only=True)
class ComparisonKind:
    """A kind of comparison, the permission to start it, and its task."""

    slug: str
    title: str
    description: str
    permission: str
    task: str
    is_set_up: Callable[[], bool] = lambda: True

    def runs(self) -> Any:
        return ReconciliationRun.objects.filter(kind=self.slug).order_by("-started_at")

    def may_be_run(self, request: HttpRequest) -> bool:
        return self.is_set_up() and request.user.has_perm(self.permission)


COMPARISONS = (
    ComparisonKind(
        slug="ledger",
        title="Ledger against accounts",
        description="Every balance, version and held sum, recomputed from entries and holds.",
        permission="credits.run_reconciliation",
        task="credits.reconcile",
    ),
    ComparisonKind(
        slug="causes",
        title="Entries against causes",
        description="Every entry, and all terms of sponsors, against the rows and approvals that caused them.",
        permission="credits.run_reconciliation",
        task="credits.compare_causes",
    ),
    ComparisonKind(
        slug="roots",
        title="Entries against signed roots",
        description="Every entry as of the signing of its root, and every root, recomputed.",
        permission="credits.run_reconciliation",
        task="proofs.audit_roots",
    ),
    ComparisonKind(
        slug="stripe",
        title="Stripe against payouts",
        description="Customers, subscriptions, payouts and clawbacks, compared with Stripe.",
        permission="credits.run_stripe_reconciliation",
        task="payments.reconcile",
        is_set_up=lambda: bool(settings.STRIPE_SECRET_KEY),
    ),
    ComparisonKind(
        slug="chain",
        title="Chain against captures",
        description="The credits captured for each call, compared with its receipt and its hold.",
        permission="credits.run_reconciliation",
        task="relay.reconcile",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A comparison for the page: its newest finished run, and further details."""

    comparison: ComparisonKind
    last: ReconciliationRun | None
    counts: list[tuple[str, int]]
    findings: list[tuple[dict[str, Any], list[tuple[str, str, str]]]]
    more: int
    unfinished: ReconciliationRun | None
    earlier: list[ReconciliationRun]
    page: str
    runs_page: str
    may_be_run: bool


def page(request: HttpRequest) -> HttpResponse:
    """Show the comparisons; on POST, start one."""
    if not may_be_opened(request):
        raise PermissionDenied
    if request.method == "POST":
        return _compare_now(request)
    context = {
        **admin.site.each_context(request),
        "title": "Reconciliation",
        "sections": [_section(comparison, request) for comparison in COMPARISONS],
    }
    return TemplateResponse(request, "backoffice/reconciliation.html", context)


def may_be_opened(request: HttpRequest) -> bool:
    return request.user.has_perm("credits.view_reconciliationrun")


def cards() -> list[Card]:
    """Return a card for each comparison; it is marked if there are findings or no run."""
    return [_card(comparison) for comparison in COMPARISONS]


def _compare_now(request: HttpRequest) -> HttpResponse:
    slug = request.POST.get("comparison")
    comparison = next((comparison for comparison in COMPARISONS if comparison.slug == slug), None)
    if comparison is None:
        raise Http404
    if not comparison.may_be_run(request):
        raise PermissionDenied
    title = comparison.title
    try:
        enqueue_now(comparison.task)
    except WorkersUnreachable as refusal:
        _record(request, comparison, "compare now refused", outcome=refusal.code)
        messages.error(request, f"{title}: {refusal.title}. {refusal.detail}")
    else:
        _record(request, comparison, "compare now")
        messages.success(request, f"{title}: a worker runs the comparison; the result appears here.")
    return HttpResponseRedirect(reverse("admin:books"))


def _record(request: HttpRequest, comparison: ComparisonKind, action: str, *, outcome: str = "") -> None:
    row = ReconciliationRun(kind=comparison.slug)
    changes = {"outcome": ("", outcome)} if outcome else {}
    audit.record(actor=staff_of(request), row=row, action=action, name=comparison.title, changes=changes)


def _section(comparison: ComparisonKind, request: HttpRequest) -> Section:
    newest: list[ReconciliationRun] = list(comparison.runs()[: _EARLIER + 1])
    last = next((run for run in newest if run.finished_at), None)
    total = last.counts.get("findings", len(last.findings)) if last else 0
    return Section(
        comparison=comparison,
        last=last,
        counts=[(noun, count) for noun, count in last.counts.items() if noun != "findings"] if last else [],
        findings=[(finding, _ids(finding)) for finding in last.findings[:_SHOWN]] if last else [],
        more=max(0, total - _SHOWN),
        unfinished=newest[0] if newest and newest[0].finished_at is None else None,
        earlier=[run for run in newest if run is not last][:_EARLIER],
        page=reverse("admin:credits_reconciliationrun_change", args=[last.pk]) if last else "",
        runs_page=f"{reverse('admin:credits_reconciliationrun_changelist')}?kind__exact={comparison.slug}",
        may_be_run=comparison.may_be_run(request),
    )


def _ids(finding: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return noun, id and page of each row in a finding; Stripe's ids link to the search."""
    return [
        (noun, str(name), _page_of(noun, str(name))) for noun, name in finding.get("ids", {}).items() if name
    ]


def _page_of(noun: str, name: str) -> str:
    if noun in _PAGES:
        return reverse(f"admin:{_PAGES[noun]}_change", args=[name])
    return f"{reverse('admin:search')}?q={name}" if "_" in name else ""


def _card(comparison: ComparisonKind) -> Card:
    run: ReconciliationRun | None = comparison.runs().filter(finished_at__isnull=False).first()
    findings = run.counts.get("findings", len(run.findings)) if run else 0
    return Card(
        title=comparison.title,
        value=f"{findings:,} difference{'' if findings == 1 else 's'}" if run else "never compared",
        detail=f"compared {age_of(run.started_at, clock.now())} ago" if run else "",
        link=reverse("admin:books"),
        is_alarming=run is None or bool(findings),
    )
