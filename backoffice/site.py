"""The admin site: the theme's pages behind a second factor, the pages that span apps, and the sidebar."""

from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django_otp import devices_for_user
from django_otp.admin import OTPAdminAuthenticationForm, OTPAdminSite
from unfold.sites import UnfoldAdminSite
from unfold.widgets import BASE_INPUT_CLASSES, SELECT_CLASSES

from backoffice import reconciliation, search
from gateway.admin import navigation

# The order of the sidebar.
GROUPS = ("People", "Credits", "Relay", "Payments", "Check-in", "Ad networks", "Webhooks", "System")


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the pages that span apps and the groups of lists, as far as `request.user` may see them."""
    pages = [{"title": "Overview", "icon": "monitoring", "link": reverse("admin:index")}]
    if reconciliation.may_be_opened(request):
        pages.append({"title": "Reconciliation", "icon": "balance", "link": reverse("admin:books")})
    return [{"items": pages}, *navigation.groups(request, order=GROUPS)]


class StaffLoginForm(OTPAdminAuthenticationForm):  # type: ignore[misc]
    """Asks for a password and a one-time password, and for the device only if there are several."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("username", "password", "otp_token"):
            self.fields[name].widget.attrs["class"] = " ".join(BASE_INPUT_CLASSES)
        self.fields["otp_device"].widget.attrs["class"] = " ".join(SELECT_CLASSES)
        self.fields["otp_device"].label = "Device"
        self.fields["username"].widget.attrs["autofocus"] = ""
        self.fields["otp_token"].label = "One-time password"
        self.fields["otp_token"].widget.attrs.update(autocomplete="one-time-code", inputmode="numeric")

    def _chosen_device(self, user: Any) -> Any:
        chosen = super()._chosen_device(user)
        if chosen is not None or self.cleaned_data.get("otp_device"):
            return chosen
        devices = list(devices_for_user(user, for_verify=True))
        return devices[0] if len(devices) == 1 else None


class StaffSite(OTPAdminSite, UnfoldAdminSite):  # type: ignore[misc]
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
            lists: HttpResponse = super().search(request, extra_context)
            return lists
        return search.page(request)
