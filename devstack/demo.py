"""
Tables and demo data: trusted implementations, relayers, users with credits, a member of staff, ad networks.

Run as a process of its own with the service's settings in the environment; it may be
repeated on the same database.
"""

import base64
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.utils import timezone

from devstack.ad_networks.opening import open_networks
from devstack.console import say
from devstack.private_file import read_json, write_json
from gateway.chain.config import get_chain

_CREDITS = 1_000_000


def seed(plan: dict[str, Any]) -> None:
    """
    Write what `plan` names: `implementations`, `profiles` and `staff`.

    Where it names a file `networks`, all ad networks are opened, and the file tells what they sign with;
    where it has a `population` of a `seed` and so many `people`, they have used the service for weeks.
    """
    from relay.services import roster

    _trust(plan["implementations"])
    roster.synchronise(now=timezone.now())
    for address in plan["profiles"]:
        _endow(address)
    _employ(**plan["staff"])
    if "networks" in plan:
        write_json(Path(plan["networks"]), open_networks(now=timezone.now()))
    if "population" in plan:
        _populate(**plan["population"], username=plan["staff"]["username"])


def _trust(implementations: dict[str, str]) -> None:
    from relay.services.implementations import trust

    for kind, address in implementations.items():
        trust(kind=kind, address=address, name="Development stack")


def _endow(profile_address: str) -> None:
    from credits.services import ledger
    from users.services.accounts import user_of_profile

    user = user_of_profile(profile_address=profile_address)
    reason = "Demo credits of the development stack."
    ledger.adjust(user=user, credits=_CREDITS, key=f"demo:{profile_address}", actor=None, reason=reason)


def _populate(*, seed: str, people: int, username: str) -> None:

    from devstack.population.settling import populate
    from users.models import User

    staff, rpc_url = User.objects.get(username=username), get_chain().node_urls[0]
    are_new = populate(seed=seed, people=people, staff=staff, rpc_url=rpc_url, now=timezone.now())
    say(f"{people if are_new else 0} people are generated")


def _employ(*, username: str, password: str, totp_secret: str) -> None:
    from django_otp.plugins.otp_totp.models import TOTPDevice

    from users.models import User

    user = User.objects.filter(username=username).first()
    user = user or User.objects.create_superuser(username, password=password)
    key = base64.b32decode(totp_secret).hex()
    TOTPDevice.objects.get_or_create(user=user, key=key, defaults={"name": "demo", "confirmed": True})


if __name__ == "__main__":
    django.setup()
    call_command("migrate", interactive=False)
    seed(read_json(Path(sys.argv[1])))
