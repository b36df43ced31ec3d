"""What stands on the chain: the LUKSO implementations, profiles, and contracts for the tests."""

from devstack.world.deployer import Call, Deployer
from devstack.world.permissions import ALL_PERMISSIONS, Permission
from devstack.world.profiles import Controller, ControllerPlan, Profile, ProfilePlan
from devstack.world.world import World, settle_world

__all__ = [
    "ALL_PERMISSIONS",
    "Call",
    "Controller",
    "ControllerPlan",
    "Deployer",
    "Permission",
    "Profile",
    "ProfilePlan",
    "World",
    "settle_world",
]
