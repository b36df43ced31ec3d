"""The months in a process of their own, with an empty database: `STORE FIGURES PEOPLE MONTHS SEED MINUTES`."""

import gc
import json
import os
import random
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import django
import stripe
from django.conf import settings
from django.core.management import call_command

from stripe_double.client import ControlClient

# The SDK makes many objects that live shortly.
_COLLECTED_AFTER = 50_000
_RATE = 1_000
_ACTING = float(os.environ.get("ACTING", "0.25"))


@dataclass(frozen=True)
class _Double:
    """The double that the stack has started."""

    url: str
    secret_key: str

    @property
    def controls(self) -> ControlClient:
        return ControlClient(self.url, self.secret_key)


def main(store: Path, figures: Path, people: int, months: int, seed: int, minutes: int) -> None:
    """Run the months and write their figures; the first difference without a name is raised."""
    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    # A request that fails is repeated at once.
    stripe.HTTPClient.INITIAL_DELAY = 0.01
    from payments.models import PayoutRate
    from tests.months.course import play
    from tests.payments.stripe_accounts import DoubleAccount

    # Later than the rate with which a database begins, and before any payment.
    PayoutRate.objects.create(
        currency="usd", valid_from=datetime(2020, 1, 2, tzinfo=UTC), credits_per_major_unit=_RATE
    )
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)
    random.seed(seed)
    double = DoubleAccount(_Double(settings.STRIPE_API_BASE, settings.STRIPE_SECRET_KEY))
    course = play(
        double, store, people=people, months=months, rate=_RATE, acting=_ACTING, seconds=60 * minutes
    )
    figures.write_text(json.dumps({"seed": seed, **course}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
