"""What every package shares, as an app of Django, because leases are rows."""

from django.apps import AppConfig


class GatewayCommonConfig(AppConfig):
    """The common parts, with the table of leases."""

    name = "gateway.common"
    label = "gateway_common"
