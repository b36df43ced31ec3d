"""The app, and the check of its settings."""

from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, register

from gateway.common.checks import weak_secrets


class CheckinConfig(AppConfig):
    name = "checkin"
    verbose_name = "check-in"

    def ready(self) -> None:
        from checkin import queries  # needs the loaded models
        from users.services import deletion

        register(seed_secrets_are_strong, "checkin")
        deletion.register("checkin", deletion.AppDeletion(waits_for=queries.spent_attempts_of_today))


def seed_secrets_are_strong(**_: Any) -> list[CheckMessage]:
    return weak_secrets("CHECKIN_SEED_SECRETS", others=("SECRET_KEY",), id="checkin.E001")
