"""Django finds the app here."""

from django.apps import AppConfig


class CheckinConfig(AppConfig):
    name = "checkin"
    verbose_name = "check-in"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from checkin import checks  # noqa: F401
