"""Where Django finds the admin's static files, and pages of other packages in our look."""

from importlib import import_module

from django.apps import AppConfig


class StaffConfig(AppConfig):
    name = "gateway.staff"
    label = "staff"
    verbose_name = "Staff"

    def ready(self) -> None:
        """Connect the handler of logins before the first one."""
        import_module("gateway.admin.middleware")
