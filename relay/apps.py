"""Django finds the app here."""

from django.apps import AppConfig


class RelayConfig(AppConfig):
    """The relay, with its system checks."""

    name = "relay"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from relay import checks  # noqa: F401 - registers on import, and needs the loaded settings
