"""The admin site: the theme's pages behind a second factor."""

from django.forms import Form
from django_otp.admin import OTPAdminSite
from unfold.sites import UnfoldAdminSite

from gateway.staff.login import StaffLoginForm


class StaffSite(OTPAdminSite, UnfoldAdminSite):  # type: ignore[misc]
    """Django's admin behind a second factor."""

    login_form: type[Form] = StaffLoginForm
    login_template = "admin/login.html"
    site_header = site_title = "Credit relay gateway"

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
