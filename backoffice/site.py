"""The admin site: the theme's pages behind a second factor, the pages that span apps, and the sidebar."""

from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django_otp.admin import OTPAdminSite
from unfold.sites import UnfoldAdminSite

from backoffice import reconciliation, search
from gateway.admin import navigation
from gateway.admin.login import StaffLoginForm

# The order of the sidebar.
GROUPS = ("People", "Credits", "Relay", "Payments", "Check-in", "Ad networks", "System")


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the pages that span apps and the groups of lists, as far as `request.user` may see them."""
    pages = [{"title": "Overview", "icon": "monitoring", "link": reverse("admin:index")}]
    if reconciliation.may_be_opened(request):
        pages.append({"title": "Reconciliation", "icon": "balance", "link": reverse("admin:books")})
    return [{"items": pages}, *navigation.groups(request, order=GROUPS)]


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
