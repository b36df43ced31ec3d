"""The admin kit: base classes for the pages of the other apps."""

from importlib import import_module

from django.apps import AppConfig


class GatewayAdminConfig(AppConfig):
    """Base classes, static files, and restyled pages of other packages. It has no models."""

    name = "gateway.admin"
    label = "gateway_admin_kit"
    verbose_name = "Admin kit"

    def ready(self) -> None:
        import_module("gateway.admin.middleware")
