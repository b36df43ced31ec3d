"""Forms of staff whose effect is shown before they are saved. The page works without JavaScript."""

from typing import Any, ClassVar

from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from gateway.common.admin_mixin import AdminMixin

_CONFIRMED = "_confirmed"
_BUTTONS = {"_save", "_continue", "_addanother", "csrfmiddlewaretoken"}


class Previewed(AdminMixin):
    """
    Holds back a valid form until the page that shows its effect is confirmed.

    `preview_template` draws what `preview_of` tells, as `preview`. The page carries what
    was sent, so no form that holds a secret may have a preview.
    """

    preview_template: ClassVar[str]

    def preview_of(self, form: Any) -> Any:
        """Return what saving the valid form would do; None where there is nothing to show."""
        raise NotImplementedError

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        if request.method == "POST" and _CONFIRMED not in request.POST:
            form = self._sent(request, object_id)
            preview = self.preview_of(form) if form is not None and form.is_valid() else None
            if preview is not None:
                return self._ask(request, object_id, form, preview)
        return super().changeform_view(request, object_id, form_url, extra_context)

    def _sent(self, request: HttpRequest, object_id: str | None) -> Any:
        """Return the form as it was sent by somebody who may save it; None for everybody else."""
        row = self.get_object(request, unquote(object_id)) if object_id else None
        is_allowed = self.has_change_permission(request, row) if row else self.has_add_permission(request)
        if not is_allowed or (object_id and row is None):
            return None
        return self.get_form(request, row, change=row is not None)(request.POST, instance=row)

    def _ask(self, request: HttpRequest, object_id: str | None, form: Any, preview: Any) -> HttpResponse:
        changelist = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_changelist"
        context = {
            **self.admin_site.each_context(request),
            "title": f"Save {form.instance}?",
            "opts": self.opts,
            "preview": preview,
            "preview_template": self.preview_template,
            "sent": [(name, value) for name, value in request.POST.items() if name not in _BUTTONS],
            "confirmed": _CONFIRMED,
            "back": request.path if object_id else reverse(changelist),
        }
        return TemplateResponse(request, "admin/preview.html", context)
