"""The app, and the check of its settings."""

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, register

from gateway.common.checks import weak_secrets


class EarningsConfig(AppConfig):
    name = "earnings"

    def ready(self) -> None:
        from earnings import metrics  # noqa: F401 - registers on import, and needs the loaded models
        from earnings.services import push  # noqa: F401 - no page imports its kinds of requests
        from earnings.services.earnings import forget
        from users.services import deletion

        deletion.register("earnings", deletion.AppDeletion(erase=forget))
        register(check_secret_keys, "earnings")


def check_secret_keys(**_: Any) -> list[CheckMessage]:
    return weak_secrets(
        "AD_NETWORK_SECRET_KEYS", others=("SECRET_KEY", "AUTH_REFRESH_SECRET"), id="earnings.E001"
    )
