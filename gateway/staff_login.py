"""The admin's login: a password and a one-time password."""

from typing import Any

from django.forms import Form
from django_otp import devices_for_user
from django_otp.admin import OTPAdminAuthenticationForm, OTPAdminSite


class StaffLoginForm(OTPAdminAuthenticationForm):  # type: ignore[misc]
    """Asks which device only of those who have several."""

    def _chosen_device(self, user: Any) -> Any:
        chosen = super()._chosen_device(user)
        if chosen is not None or self.cleaned_data.get("otp_device"):
            return chosen
        devices = list(devices_for_user(user, for_verify=True))
        return devices[0] if len(devices) == 1 else None


class StaffSite(OTPAdminSite):  # type: ignore[misc]
    """Django's admin behind a second factor."""

    site_header = site_title = "Credit relay gateway"
    login_form: type[Form] = StaffLoginForm
