"""`manage.py seal_webhook_secrets`: encrypt the secrets under a new first key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks.services import endpoints


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of all webhook endpoints under the first of WEBHOOK_SECRET_KEYS; exit 1 where one "
        "cannot be decrypted with any of them. Safe to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        result = endpoints.reseal_secrets()
        self.stdout.write(f"{result.secrets} secrets are encrypted under the first key.")
        if result.unreadable:
            raise CommandError(
                f"No key decrypts the secrets of: {', '.join(result.unreadable)}. Restore their old "
                "key, or create new secrets."
            )
