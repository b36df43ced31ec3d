"""The admin site: the theme's pages behind a second factor, and the pages that span apps."""

from typing import Any

from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import ValidationError
from django.db.models.fields import BLANK_CHOICE_DASH
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import path, reverse
from django.utils.functional import SimpleLazyObject
from django_otp import devices_for_user
from django_otp.admin import OTPAdminAuthenticationForm, OTPAdminSite
from unfold.forms import AdminOwnPasswordChangeForm
from unfold.sites import UnfoldAdminSite
from unfold.widgets import BASE_INPUT_CLASSES, SELECT_CLASSES

from backoffice import invitation, reconciliation, search, second_factor, sidebar
from gateway.common import clock
from users.models import Phone, RecoveryCodes
from users.services import second_factors

_MUST_ENROL = "must-enrol"


class StaffLoginForm(OTPAdminAuthenticationForm):  # type: ignore[misc]
    """Asks for a password and a one-time password, and for the device only if there are several."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("username", "password", "otp_token"):
            self.fields[name].widget.attrs["class"] = " ".join(BASE_INPUT_CLASSES)
        self.fields["otp_device"].widget.attrs["class"] = " ".join(SELECT_CLASSES)
        self.fields["otp_device"].label = "Device"
        self.fields["username"].widget.attrs["autofocus"] = ""
        self.fields["otp_token"].label = "One-time password, or a recovery code"
        self.fields["otp_token"].widget.attrs.update(autocomplete="one-time-code")
        self.fields[
            "otp_token"
        ].help_text = "At your first login, leave it empty: the next page sets up your phone."

    def clean_otp(self, user: Any) -> None:
        # A password alone is not enough: the person must set up a phone first.
        if user is not None and second_factors.must_enrol(user, now=clock.now()):
            second_factor.begin(self.request, user)
            raise ValidationError("Set up a phone first.", code=_MUST_ENROL)
        super().clean_otp(user)

    def _chosen_device(self, user: Any) -> Any:
        chosen = super()._chosen_device(user)
        if chosen is not None or self.cleaned_data.get("otp_device"):
            return chosen
        kind = Phone if second_factors.is_number(self.cleaned_data.get("otp_token") or "") else RecoveryCodes
        devices = [device for device in devices_for_user(user, for_verify=True) if isinstance(device, kind)]
        return devices[0] if len(devices) == 1 else None

    @staticmethod
    def device_choices(user: Any) -> list[tuple[str, str]]:
        """Offer the phones; a recovery code is recognised by its form."""
        phones = [device for device in devices_for_user(user) if isinstance(device, Phone)]
        return [*BLANK_CHOICE_DASH, *((phone.persistent_id, phone.name) for phone in phones)]


class OwnPasswordForm(AdminOwnPasswordChangeForm):  # type: ignore[misc]
    """Asks for the current password, and twice for a new one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        labels = ("Your password now", "New password", "New password again")
        for name, label in zip(("old_password", "new_password1", "new_password2"), labels, strict=True):
            self.fields[name].label = label
            self.fields[name].help_text = ""
        self.fields["new_password1"].help_text = "At least 12 characters, and not a common password."


class StaffSite(OTPAdminSite, UnfoldAdminSite):  # type: ignore[misc]
    login_form: type[Form] = StaffLoginForm
    login_template = "admin/login.html"
    site_header = site_title = "Credit relay gateway"
    index_title = "Overview"

    # django-otp's default name is otpadmin.
    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)

    def get_urls(self) -> list[Any]:
        return [
            path("lists/", self.admin_view(sidebar.lists), name="lists"),
            path("books/", self.admin_view(reconciliation.page), name="books"),
            path("second-factor/", self.admin_view(second_factor.page), name="second_factor"),
            path("invitation/<str:token>/", invitation.page, name="invitation"),
            path("second-factor/enrol/", second_factor.enrol, name="enrol"),
            *super().get_urls(),
        ]

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Return Django's list of apps lazily, because most pages show the sidebar instead."""
        return SimpleLazyObject(lambda: super(StaffSite, self).get_app_list(request, app_label))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Log in; redirect people without a second factor to set up a phone."""
        response: HttpResponse = super().login(request, extra_context)
        form = (getattr(response, "context_data", None) or {}).get("form")
        if form is not None and form.has_error("__all__", _MUST_ENROL):
            return HttpResponseRedirect(reverse("admin:enrol"))
        if request.method == "POST" and request.user.is_authenticated:
            second_factor.warn_of_codes(request)
        return response

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponseBase:
        context = {**self.each_context(request), "title": "Change your password", **(extra_context or {})}
        view = PasswordChangeView.as_view(
            form_class=OwnPasswordForm,
            success_url=reverse("admin:password_change_done"),
            extra_context=context,
        )
        return view(request)

    def password_change_done(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        done: HttpResponse = super().password_change_done(
            request, {"title": "Your password was changed", **(extra_context or {})}
        )
        return done

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Search the names of lists for the sidebar (`s`), or everything (`q`)."""
        if "s" in request.GET:
            lists: HttpResponse = super().search(request, extra_context)
            return lists
        return search.page(request)
