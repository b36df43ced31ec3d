"""
The admin's login: a password and a one-time password.

The admin site: the theme's pages behind a second factor.
"""

from typing import Any

from django_otp import devices_for_user
from django_otp.admin import OTPAdminAuthenticationForm
from unfold.widgets import BASE_INPUT_CLASSES, SELECT_CLASSES


class StaffLoginForm(OTPAdminAuthenticationForm):  # type: ignore[misc]
    """Asks for the device only if there are several."""

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
