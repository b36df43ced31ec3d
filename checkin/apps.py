"""Django finds the app here."""

from django.apps import AppConfig


class CheckinConfig(AppConfig):
    name = "checkin"
    default_auto_field = "django.db.models.BigAutoField"
