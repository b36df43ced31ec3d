"""Configures the shared code as a Django app, because it has the table of leases."""

from importlib import import_module

from django.apps import AppConfig


class GatewayCommonConfig(AppConfig):
    """The shared code and the table of leases."""

    name = "gateway.common"
    label = "gateway_common"

    def ready(self) -> None:
        """Register checks, and start error reporting."""
        import_module("gateway.common.checks")
        import_module("gateway.common.logging").start_sentry()
