"""Django finds the staff's static files, and the pages of other packages in our look, here."""

from importlib import import_module

from django.apps import AppConfig


class StaffConfig(AppConfig):
    name = "gateway.staff"
    label = "staff"
    verbose_name = "Staff"

    def ready(self) -> None:
        """Hear of logins from the first one on."""
        import_module("gateway.staff.sessions")
