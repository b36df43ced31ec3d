"""`manage.py seal_network_secrets`: encrypt the secrets under a new first key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from earnings.services import networks


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of all ad networks under the first of AD_NETWORK_SECRET_KEYS; exit 1 where one "
        "cannot be decrypted with any of them. Safe to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        result = networks.reseal_secrets()
        self.stdout.write(f"{result.secrets} secrets are encrypted under the first key.")
        if result.unreadable:
            raise CommandError(
                f"No key decrypts the secrets of: {', '.join(result.unreadable)}. Restore their old key, "
                "or enter new secrets."
            )
