"""Django finds the app here."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    name = "payments"

    def ready(self) -> None:
        from payments import checks, metrics  # noqa: F401 - register on import, and need the loaded models
