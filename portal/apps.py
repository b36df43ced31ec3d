"""Django finds the app here."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """What account holders see of their own account."""

    name = "portal"
