"""Django finds the app here."""

from django.apps import AppConfig


class EarningsConfig(AppConfig):
    """Ad networks and their postbacks."""

    name = "earnings"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from earnings import checks  # noqa: F401
