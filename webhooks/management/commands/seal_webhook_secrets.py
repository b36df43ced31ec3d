"""`manage.py seal_webhook_secrets`: encrypt the secrets of endpoints and verifiers under a new first key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sponsors.services import verifiers
from webhooks.services import endpoints


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of all webhook endpoints, and of sponsors' verifiers, under the first of "
        "WEBHOOK_SECRET_KEYS; exit 1 where one cannot be decrypted with any of them. Safe to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        of_endpoints, of_verifiers = endpoints.reseal_secrets(), verifiers.reseal_secrets()
        self.stdout.write(
            f"{of_endpoints.secrets + of_verifiers.secrets} secrets are encrypted under the first key."
        )
        unreadable = of_endpoints.unreadable + of_verifiers.unreadable
        if unreadable:
            raise CommandError(
                f"No key decrypts the secrets of: {', '.join(unreadable)}. Restore their old "
                "key, or create new secrets."
            )
