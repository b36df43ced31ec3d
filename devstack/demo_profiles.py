"""The profiles that a demo, a check or a curious person plays with."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from eth_account import Account

from devstack.private_file import read_json, write_json
from devstack.world import Controller, ControllerPlan, Permission, Profile, ProfilePlan, World
from devstack.world.deployer import ETHER
from devstack.world.permissions import allow_transfers_to

_ACT = Permission.CALL | Permission.TRANSFERVALUE
_BALANCE = 10 * ETHER


def settle_profiles(world: World, path: Path) -> list[Profile]:
    """Return the demo profiles of this chain; the first call makes them."""
    known = read_json(path)
    if known.get("world") == world.identity:
        return [_profile(entry) for entry in known["profiles"]]
    profiles = world.create_profiles(*_plans())
    write_json(path, {"world": world.identity, "profiles": [asdict(profile) for profile in profiles]})
    return profiles


def described(profiles: list[Profile]) -> list[dict[str, Any]]:
    """Return one entry per controller, as `stack.json` lists them."""
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


def _plans() -> list[ProfilePlan]:
    """Three profiles of one almighty controller, then one whose further controllers may do less."""
    almighty = ControllerPlan()
    friend = str(Account.from_key(almighty.private_key).address)
    fourth = ProfilePlan(
        (
            ControllerPlan(),
            ControllerPlan(_ACT | Permission.EXECUTE_RELAY_CALL | Permission.SUPER_SETDATA),
            ControllerPlan(_ACT | Permission.SIGN),
            ControllerPlan(
                _ACT | Permission.SIGN | Permission.EXECUTE_RELAY_CALL, allow_transfers_to(friend)
            ),
        ),
        _BALANCE,
    )
    first = ProfilePlan((almighty,), _BALANCE)
    return [first, ProfilePlan(balance_wei=_BALANCE), ProfilePlan(balance_wei=_BALANCE), fourth]


def _profile(entry: dict[str, Any]) -> Profile:
    people = (
        Controller(item["address"], item["private_key"], Permission(item["permissions"]))
        for item in entry["controllers"]
    )
    return Profile(entry["profile_address"], entry["key_manager_address"], tuple(people))
