"""The admin site asks staff for a second factor."""

from django.contrib.admin.apps import AdminConfig


class SecondFactorAdminConfig(AdminConfig):
    """Replaces Django's admin site by one that requires a one-time password."""

    default_site = "gateway.staff.site.StaffSite"
