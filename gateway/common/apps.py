"""What every package shares, as an app of Django, because leases are rows."""

from importlib import import_module

from django.apps import AppConfig


class GatewayCommonConfig(AppConfig):
    """The common parts, with the table of leases."""

    name = "gateway.common"
    label = "gateway_common"

    def ready(self) -> None:
        """Register the checks and the histograms, and report errors: all that needs the settings."""
        import_module("gateway.common.checks")
        import_module("gateway.common.metrics").time_statements()
        import_module("gateway.common.sentry").start()
