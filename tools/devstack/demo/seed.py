"""
Tables and demo data: trusted implementations, relayers, users with credits, staff, ad networks.

Runs as a separate process with the service's settings in its environment; it may be repeated.
"""

import base64
import hashlib
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command
from django.utils import timezone

from devstack.ad_networks.demo import enable_networks
from devstack.console import echo
from devstack.demo.sponsor import open_sponsor
from devstack.files import read_json, write_json

_CREDITS = 1_000_000


def seed(plan: dict[str, Any]) -> None:
    """
    Write what `plan` names: `implementations`, `profiles` and `staff`.

    With a file `seeded`, all ad networks are enabled, each role gets a login, and both are written to the file.
    With a `population`, its `seed` determines its `people`; `callers` of them relay calls. A sponsor is opened, too.
    """
    from relay.services.fleet import relayers

    _trust(plan["implementations"])
    relayers.sync(now=timezone.now())
    _employ(**plan["staff"])
    for address in plan["profiles"]:
        _give_credits(address, plan.get("credits", _CREDITS), plan["staff"])
    if "seeded" in plan:
        staff_by_role = _employ_by_role(plan["staff"], plan["staff_secret"])
        networks = enable_networks(now=timezone.now())
        seeded = {"networks": networks, "staff_by_role": staff_by_role}
        if "population" in plan:
            owner, *_ = plan["profiles"]
            seeded["sponsor"] = open_sponsor(
                owner=owner,
                voucher_key=plan["voucher_key"],
                create_key=plan["create_key"],
                staff=_clerk(plan["staff"]),
                now=timezone.now(),
            )
            _populate(plan["population"], staff=plan["staff"], opened=networks)
        write_json(Path(plan["seeded"]), seeded)


def _trust(implementations: dict[str, str]) -> None:
    from users.models import TrustedImplementation

    for kind, address in implementations.items():
        TrustedImplementation.objects.get_or_create(
            kind=kind, address=address, defaults={"name": "Development stack"}
        )


def _clerk(staff: dict[str, str]) -> Any:
    from users.models import User

    return User.objects.get(username=staff["username"])


def _give_credits(profile_address: str, credits: int, staff: dict[str, str]) -> None:
    from devstack.demo import requests
    from users.services.profiles import user_of_profile

    user = user_of_profile(profile_address=profile_address)
    reason = "Demo credits of the development stack."
    key = f"demo:{profile_address}"
    requests.adjust(owner=user, credits=credits, key=key, staff=_clerk(staff), reason=reason)


def _populate(plan: dict[str, Any], *, staff: dict[str, str], opened: dict[str, dict[str, Any]]) -> None:
    from devstack.demo.people import generate_people
    from devstack.demo.relay_calls import Caller

    callers = [Caller(**caller) for caller in plan["callers"]]
    is_new = generate_people(
        seed=plan["seed"],
        people=plan["people"],
        callers=callers,
        staff=_clerk(staff),
        opened=opened,
        now=timezone.now(),
    )
    echo(f"{plan['people'] if is_new else 0} people are generated")


def _employ(*, username: str, password: str, totp_secret: str) -> None:
    from users.models import User

    user = User.objects.filter(username=username).first()
    user = user or User.objects.create_superuser(username, password=password)
    _add_device(user, totp_secret)


def _employ_by_role(staff: dict[str, str], secret: str) -> dict[str, dict[str, str]]:
    """
    Give every role a login that is named after it, and return all of them.

    They share the password of `staff`, because each hash takes a third of a second.
    """
    from django.contrib.auth.models import Group

    from backoffice.roles import ROLES
    from users.models import User

    logins = {}
    for role in ROLES:
        user, is_new = User.objects.get_or_create(username=role, defaults={"is_staff": True})
        if is_new:
            user.password = User.objects.get(username=staff["username"]).password
            user.save(update_fields=["password"])
            user.groups.add(Group.objects.get(name=role))
        digest = hashlib.sha256(f"{role} {secret}".encode()).digest()
        totp_secret = base64.b32encode(digest[:20]).decode()
        _add_device(user, totp_secret)
        logins[role] = {"username": role, "password": staff["password"], "totp_secret": totp_secret}
    return logins


def _add_device(user: Any, totp_secret: str) -> None:
    from users.models import Phone

    if not Phone.objects.filter(user=user, name="demo").exists():
        phone = Phone(user=user, name="demo")
        phone.key = base64.b32decode(totp_secret).hex()
        phone.save()


if __name__ == "__main__":
    django.setup()
    call_command("migrate", interactive=False)
    seed(read_json(Path(sys.argv[1])))
