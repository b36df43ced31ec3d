"""Django finds the app here."""

from django.apps import AppConfig


class RewardsConfig(AppConfig):
    """Badges, experience, modifiers and cashback."""

    name = "rewards"
    default_auto_field = "django.db.models.BigAutoField"
