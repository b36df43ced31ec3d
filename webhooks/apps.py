"""The app, and the check of its settings."""

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, register

from gateway.common.checks import weak_secrets


class WebhooksConfig(AppConfig):
    name = "webhooks"

    def ready(self) -> None:
        from users.services import deletion
        from webhooks import metrics  # noqa: F401 - registers on import, and needs the loaded models
        from webhooks.services.messages import forget

        deletion.register("webhooks", deletion.AppDeletion(erase=forget))

        register(check_secret_keys, "webhooks")


def check_secret_keys(**_: Any) -> list[CheckMessage]:
    return weak_secrets(
        "WEBHOOK_SECRET_KEYS",
        others=("SECRET_KEY", "AUTH_REFRESH_SECRET"),
        id="webhooks.E001",
        may_be_empty=True,
    )
