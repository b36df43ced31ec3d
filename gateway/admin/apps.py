"""The admin kit, which the other apps' pages are made of."""

from importlib import import_module

from django.apps import AppConfig


class GatewayAdminConfig(AppConfig):
    """The admin kit, with the audit log, static files, and pages of other packages in our look."""

    name = "gateway.admin"
    label = "gateway_admin"
    verbose_name = "Admin"

    def ready(self) -> None:
        import_module("gateway.admin.middleware")
