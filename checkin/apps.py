"""The app, and the check of its settings."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from gateway.common.env import SECRET_LETTERS


class CheckinConfig(AppConfig):
    name = "checkin"
    verbose_name = "check-in"

    def ready(self) -> None:
        register(seed_secrets_are_strong, "checkin")


def seed_secrets_are_strong(**_: Any) -> list[CheckMessage]:
    secrets = settings.CHECKIN_SEED_SECRETS
    if secrets and all(len(text) >= SECRET_LETTERS and text != settings.SECRET_KEY for text in secrets):
        return []
    hint = "Make one with: openssl rand -base64 48"
    message = (
        f"CHECKIN_SEED_SECRETS needs secrets of {SECRET_LETTERS} characters, and none that is SECRET_KEY."
    )
    return [Error(message, hint=hint, id="checkin.E001")]
