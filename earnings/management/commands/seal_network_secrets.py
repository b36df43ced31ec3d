"""`manage.py seal_network_secrets`: encrypt the secrets and second factors under a new first key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from earnings.services import networks
from users.models import Phone


class Command(BaseCommand):
    help = (
        "Encrypt the secrets of all ad networks, and the second factors of staff, under the first of "
        "AD_NETWORK_SECRET_KEYS; exit 1 where one cannot be decrypted with any of them. Safe to repeat."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        of_networks, of_staff = networks.reseal_secrets(), Phone.reseal_all()
        count = of_networks.secrets + of_staff.secrets
        self.stdout.write(f"{count} secrets are encrypted under the first key.")
        if unreadable := of_networks.unreadable + of_staff.unreadable:
            raise CommandError(
                f"No key decrypts the secrets of: {', '.join(unreadable)}. Restore their old key, "
                "or enter new secrets."
            )
