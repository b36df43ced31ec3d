"""Configures the shared code as a Django app, because it has the table of leases."""

import logging
from importlib import import_module

from django.apps import AppConfig

logger = logging.getLogger(__name__)


class GatewayCommonConfig(AppConfig):
    """The shared code and the table of leases."""

    name = "gateway.common"
    label = "gateway_common"

    def ready(self) -> None:
        """Register checks, name variables that are not read, and start error reporting."""
        for warning in import_module("gateway.common.checks").every_variable_is_read():
            logger.warning(warning.msg)
        import_module("gateway.common.logging").start_sentry()
