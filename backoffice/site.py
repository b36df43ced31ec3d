"""The admin site: the theme's pages behind a second factor, and the pages that span apps."""

from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django_otp.admin import OTPAdminSite
from unfold.sites import UnfoldAdminSite

from backoffice import reconciliation, search
from gateway.admin.login import StaffLoginForm


class StaffSite(OTPAdminSite, UnfoldAdminSite):  # type: ignore[misc]
    """Django's admin behind a second factor."""

    login_form: type[Form] = StaffLoginForm
    login_template = "admin/login.html"
    site_header = site_title = "Credit relay gateway"
    index_title = "Overview"

    # django-otp would name it otpadmin.
    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)

    def get_urls(self) -> list[Any]:
        return [path("books/", self.admin_view(reconciliation.page), name="books"), *super().get_urls()]

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Search the names of lists for the sidebar (`s`), or everything (`q`)."""
        if "s" in request.GET:
            found: HttpResponse = super().search(request, extra_context)
            return found
        return search.page(request)
