"""`manage.py seal_webhook_secrets`: seal the secrets again after a new key was put first."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks.services import endpoints


class Command(BaseCommand):
    help = (
        "Seal the secrets of all webhook endpoints under the first of WEBHOOK_SECRET_KEYS; exit 1 where one "
        "cannot be read with any of them. It may be run again."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        result = endpoints.reseal_secrets()
        self.stdout.write(f"{result.secrets} secrets are sealed under the first key.")
        if result.unreadable:
            raise CommandError(
                f"No key opens the secrets of: {', '.join(result.unreadable)}. Set their old key again, "
                "or make new secrets."
            )
