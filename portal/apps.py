"""The app's configuration."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """The account holder's view of the account."""

    name = "portal"
