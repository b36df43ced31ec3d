"""The demo profiles, and `stack.json`, which describes a running stack."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from devstack.environment import Staff
from devstack.files import read_json, write_json
from devstack.services.stack import Services
from devstack.world.cards import card
from devstack.world.deployer import ETHER
from devstack.world.keys import address_of
from devstack.world.permissions import Permission, allow_transfers_to
from devstack.world.profiles import Controller, ControllerPlan, Profile, ProfilePlan
from devstack.world.world import World
from stripe_double.account import publishable_key

_ACT = Permission.CALL | Permission.TRANSFERVALUE
_BALANCE = 10 * ETHER


def load_profiles(world: World, path: Path, plans: Sequence[ProfilePlan]) -> list[Profile]:
    """Return this chain's profiles from `path`; create them on the first call."""
    kept = read_json(path)
    if kept.get("world") == world.identity:
        return [_profile(entry) for entry in kept["profiles"]]
    profiles = world.create_profiles(*plans)
    write_json(path, {"world": world.identity, "profiles": [asdict(profile) for profile in profiles]})
    return profiles


def demo_profiles() -> list[ProfilePlan]:
    """Return three profiles with one controller each, and one with further, restricted controllers."""
    owner = ControllerPlan()
    recipient = address_of(owner.private_key)
    fourth = ProfilePlan(
        (
            ControllerPlan(),
            ControllerPlan(_ACT | Permission.EXECUTE_RELAY_CALL | Permission.SUPER_SETDATA),
            ControllerPlan(_ACT | Permission.SIGN),
            ControllerPlan(
                _ACT | Permission.SIGN | Permission.EXECUTE_RELAY_CALL, allow_transfers_to(recipient)
            ),
        ),
        _BALANCE,
    )
    first = ProfilePlan((owner,), _BALANCE, card("ada", (91, 61, 245)))
    second = ProfilePlan(balance_wei=_BALANCE, card=card("grace", (20, 113, 61)))
    return [first, second, ProfilePlan(balance_wei=_BALANCE), fourth]


def write_stack_file(
    path: Path,
    services: Services,
    *,
    base_url: str,
    staff: Staff,
    staff_by_role: dict[str, Any],
    profiles: list[Profile],
    networks: dict[str, Any],
    sponsor: dict[str, Any],
    second_chain: dict[str, Any],
) -> None:
    """Describe the running stack; the first profiles have one controller with all permissions."""
    write_json(
        path,
        {
            "base_url": base_url,
            "admin_url": f"{base_url}/admin/",
            "rpc_url": services.rpc_url,
            "chain_id": services.chain_id,
            "stripe_url": services.stripe.url,
            "stripe_secret_key": services.stripe.secret_key,
            "stripe_publishable_key": publishable_key(services.stripe.secret_key),
            "stripe_webhook_secret": services.stripe.webhook_secret,
            # The owner's URL, for developers; the service itself uses the restricted role.
            "database_url": services.database_url,
            "application_database_url": services.application_database_url,
            "redis_url": services.redis_url,
            "staff": asdict(staff),
            "staff_by_role": staff_by_role,
            "profiles": described(profiles),
            "networks": described_networks(
                networks, base_url=base_url, admob_key=services.verifier_keys.private_key
            ),
            "sponsor": sponsor,
            # Its URL and id; empty without a second chain.
            "second_chain": second_chain,
        },
    )


def described(profiles: list[Profile]) -> list[dict[str, Any]]:
    """Return one entry per controller."""
    return [
        {
            "profile_address": profile.profile_address,
            "key_manager_address": profile.key_manager_address,
            "controller_private_key": controller.private_key,
            "permissions": controller.permissions.names,
        }
        for profile in profiles
        for controller in profile.controllers
    ]


def described_networks(networks: dict[str, Any], *, base_url: str, admob_key: str) -> dict[str, Any]:
    """Return each ad network's postback URL and secret, by slug."""
    return {
        slug: {
            "address": f"{base_url}/api/postbacks/{slug}"
            + (f"/{network['token']}" if network["token"] else ""),
            "secret": admob_key if slug == "admob" else network["secret"],
            "kind": network["kind"],
            "rate": network["rate"],
            "hold_hours": network["hold_hours"],
        }
        for slug, network in networks.items()
    }


def _profile(entry: dict[str, Any]) -> Profile:
    controllers = (
        Controller(item["address"], item["private_key"], Permission(item["permissions"]))
        for item in entry["controllers"]
    )
    return Profile(entry["profile_address"], entry["key_manager_address"], tuple(controllers))
