"""The buttons that export a list, as currently filtered and searched, to a file."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils import timezone

from gateway.common import audit
from gateway.common.admin_mixin import AdminMixin
from gateway.common.exports.documents import csv_lines, xlsx_file
from gateway.common.exports.rows import Column, cells_of
from gateway.common.owner import staff_of

_KINDS = ("csv", "xlsx")
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class Exportable(AdminMixin):
    """
    Exports `export_columns` of the list's rows, for staff who may view the list and have `export_<model>`.

    Each export is written to the audit log, with its filters, before the first byte is sent.
    """

    export_columns: ClassVar[Sequence[Column]]
    change_list_template = "admin/exported_list.html"

    def get_urls(self) -> list[Any]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        export = path("export/<slug:kind>/", self.admin_site.admin_view(self.export_view), name=name)
        return [export, *super().get_urls()]

    def has_export_permission(self, request: HttpRequest) -> bool:
        """Return whether the signed-in member of staff may export the list."""
        wanted = f"{self.opts.app_label}.export_{self.opts.model_name}"
        return self.has_view_permission(request) and request.user.has_perm(wanted)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        offered = self._links(request) if self.has_export_permission(request) else []
        return super().changelist_view(request, {**(extra_context or {}), "exports": offered})

    def export_view(self, request: HttpRequest, kind: str) -> HttpResponseBase:
        """Stream the list as a file."""
        if not self.has_export_permission(request):
            raise PermissionDenied
        if kind not in _KINDS:
            raise Http404
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(reverse(self._address("changelist")))
        self._note(request, kind)
        cells = cells_of(rows, self.export_columns)
        name = f"{self.opts.verbose_name_plural} {timezone.now():%Y-%m-%d}.{kind}".replace(" ", "-")
        if kind == "xlsx":
            return FileResponse(xlsx_file(cells), as_attachment=True, filename=name, content_type=_XLSX)
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return StreamingHttpResponse(
            csv_lines(cells), content_type="text/csv; charset=utf-8", headers=headers
        )

    def _note(self, request: HttpRequest, kind: str) -> None:
        chosen = request.GET.urlencode() or "all"
        audit.record(
            actor=staff_of(request),
            row=self.model(),
            action=f"export {kind}",
            changes={"rows": ("", chosen)},
            name=str(self.opts.verbose_name_plural),
        )

    def _links(self, request: HttpRequest) -> list[dict[str, str]]:
        query = f"?{request.GET.urlencode()}" if request.GET else ""
        return [
            {"label": kind.upper(), "url": reverse(self._address("export"), args=[kind]) + query}
            for kind in _KINDS
        ]

    def _address(self, view: str) -> str:
        return f"admin:{self.opts.app_label}_{self.opts.model_name}_{view}"
