"""The app, and the check of its settings."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from gateway.common.env import SECRET_LETTERS


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
    keys = settings.AD_NETWORK_SECRET_KEYS
    other_keys = {settings.SECRET_KEY, settings.AUTH_REFRESH_SECRET}
    if keys and all(len(key) >= SECRET_LETTERS and key not in other_keys for key in keys):
        return []
    message = (
        f"AD_NETWORK_SECRET_KEYS needs keys of {SECRET_LETTERS} characters, "
        "and none that is SECRET_KEY or AUTH_REFRESH_SECRET."
    )
    return [Error(message, hint="Make one with: openssl rand -base64 48", id="earnings.E001")]
