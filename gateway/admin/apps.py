"""The admin kit, which the other apps' pages are made of."""

from importlib import import_module

from django.apps import AppConfig


class GatewayAdminConfig(AppConfig):
    """The admin kit: base classes, static files, and pages of other packages in our look. It has no models."""

    name = "gateway.admin"
    label = "gateway_admin_kit"
    verbose_name = "Admin kit"

    def ready(self) -> None:
        import_module("gateway.admin.middleware")
