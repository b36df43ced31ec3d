"""`manage.py seal_network_secrets`: after a new key was put first."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from earnings.services import networks


class Command(BaseCommand):
    help = (
        "Seal the secrets of all ad networks under the first of AD_NETWORK_SECRET_KEYS; exit 1 where one "
        "cannot be read with any of them. It may be run again."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        done = networks.seal_anew()
        self.stdout.write(f"{done.secrets} secrets are sealed under the first key.")
        if done.unreadable:
            raise CommandError(
                f"No key opens the secrets of: {', '.join(done.unreadable)}. Set their old key again, "
                "or enter new secrets."
            )
