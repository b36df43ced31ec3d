"""Prepares running servers for the service: profiles, relayers, settings, tables, demo data, webhooks."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from devstack.console import echo, step
from devstack.django_process import process_environment, run_django
from devstack.environment import (
    Secrets,
    django_environment,
    keep_secrets,
    overriding,
    owner_environment,
)
from devstack.files import read_json, write_json
from devstack.ports import free_port
from devstack.services.outside import Outside
from devstack.services.stack import start_services
from devstack.stack_file import demo_profiles, load_profiles
from devstack.world.deployer import ETHER
from devstack.world.keys import address_of
from devstack.world.profiles import Profile, ProfilePlan

_RELAYER_WEI = 1_000 * ETHER
_DEMO_PEOPLE, _DEMO_CALLERS, _DEMO_CREDITS, _DEMO_RELAYERS = 40, 6, 1_000_000, 4
_LOAD_PROFILES, _LOAD_CREDITS, _LOAD_RELAYERS, _LOAD_IN_FLIGHT = 60, 10**9, 16, 64


@dataclass(frozen=True)
class Plan:
    """
    The content of a stack: profiles with credits, generated users, and overridden settings.

    Of the generated `people`, the first `callers` have a profile on the chain and relay calls.
    """

    profiles: Sequence[ProfilePlan]
    credits: int = _DEMO_CREDITS
    people: int = 0
    callers: int = 0
    relayers: int = _DEMO_RELAYERS
    settings: dict[str, str] = field(default_factory=dict)


def demo_plan() -> Plan:
    """Return the plan for trying out the service."""
    return Plan(demo_profiles(), people=_DEMO_PEOPLE, callers=_DEMO_CALLERS)


def load_plan() -> Plan:
    """Return the plan for load generators: many profiles with credits, many relayers, little logging."""
    # A profile represents many users, so limits per profile are off.
    settings = {
        "LOG_LEVEL": "WARNING",
        "RELAY_MAX_IN_FLIGHT": str(_LOAD_IN_FLIGHT),
        **overriding(WEB_MAX_LONG_POLLS_PER_USER=1000),
        "RELAY_CANCELLED_CALLS_PER_HOUR": "1000000",
    }
    profiles = [ProfilePlan() for _ in range(_LOAD_PROFILES)]
    return Plan(profiles, credits=_LOAD_CREDITS, relayers=_LOAD_RELAYERS, settings=settings)


@dataclass(frozen=True)
class Prepared:
    """The environment of the service's processes; `seed` writes the demo data, also while they run."""

    directory: Path
    port: int
    settings: dict[str, str]
    owner_settings: dict[str, str]
    profiles: list[Profile]
    secrets: Secrets

    def seed(self) -> None:
        """Migrate and write the demo data; existing data is kept."""
        log, plan = self.directory / "log" / "demo.log", self.directory / "demo.json"
        run_django(log, self.owner_environment, "-m", "devstack.demo.seed", str(plan))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process of the service."""
        return process_environment(self.settings)

    @property
    def owner_environment(self) -> dict[str, str]:
        """The environment of a process that owns the tables."""
        return process_environment(self.settings | self.owner_settings)

    @property
    def networks(self) -> dict[str, Any]:
        """The secrets of the ad networks by slug; available after `seed`."""
        return dict(read_json(self.directory / "seeded.json")["networks"])

    @property
    def staff_by_role(self) -> dict[str, Any]:
        """The logins of staff, one per role; available after `seed`."""
        return dict(read_json(self.directory / "seeded.json")["staff_by_role"])

    @property
    def sponsor(self) -> dict[str, Any]:
        """The demo's sponsor, if there is one; available after `seed`."""
        return dict(read_json(self.directory / "seeded.json").get("sponsor", {}))


def prepare(
    services: Outside, directory: Path, plan: Plan, *, port: int, block_time: float | None
) -> Prepared:
    """Prepare chain, database and Stripe double for the service; existing data is kept."""
    secrets = keep_secrets(directory / "secrets.json", relayers=plan.relayers)
    settings = django_environment(services, secrets, port=port, block_time=block_time) | plan.settings
    with step("profiles with controllers, relayers with LYX"):
        plans = [*plan.profiles, *(ProfilePlan() for _ in range(plan.callers))]
        every = load_profiles(services.world, directory / "profiles.json", plans)
        profiles, callers = every[: len(plan.profiles)], every[len(plan.profiles) :]
        services.world.fund(_RELAYER_WEI, *secrets.relayer_addresses, address_of(secrets.treasury_key))
    _forget_rows_of_another_chain(services, directory / "database.json")
    services.stripe.controls.set_webhook_endpoint(
        f"{settings['PUBLIC_URL']}/webhooks/stripe", services.stripe.webhook_secret
    )
    write_json(directory / "demo.json", _demo_data(services, secrets, profiles, callers, directory, plan))
    return Prepared(directory, port, settings, owner_environment(services), profiles, secrets)


@contextmanager
def short_lived_stack(
    settings: Mapping[str, str], *, owns_tables: bool = False
) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a folder and the environment of Django processes, on temporary servers."""
    with (
        tempfile.TemporaryDirectory(prefix="stack-") as name,
        start_services(Path(name), block_time=None, durable=False) as services,
    ):
        folder = Path(name)
        kept = keep_secrets(folder / "secrets.json")
        usual = django_environment(services, kept, port=free_port(), block_time=None)
        owner = owner_environment(services) if owns_tables else {}
        yield folder, process_environment({**usual, **owner, **settings})


def _forget_rows_of_another_chain(services: Outside, path: Path) -> None:
    """Recreate the database if the chain was recreated."""
    identity = services.world.identity
    if read_json(path).get("world", identity) != identity:
        echo("  · the chain is new, so the database and the Stripe double are reset")
        services.empty_database()
        services.stripe.controls.reset()
    write_json(path, {"world": identity})


def _demo_data(
    services: Outside,
    secrets: Secrets,
    profiles: list[Profile],
    callers: list[Profile],
    directory: Path,
    plan: Plan,
) -> dict[str, object]:
    """Return the plan for `devstack.demo.seed`."""
    contracts = services.world.implementations
    population = {
        "seed": secrets.derived("population"),
        "people": plan.people,
        "callers": [
            {
                "profile_address": caller.profile_address,
                "key_manager_address": caller.key_manager_address,
                "controller_private_key": caller.controller.private_key,
            }
            for caller in callers
        ],
    }
    return {
        "implementations": {"profile": contracts.universal_profile, "key-manager": contracts.key_manager},
        "profiles": [profile.profile_address for profile in profiles],
        "credits": plan.credits,
        "staff": asdict(secrets.staff),
        "staff_secret": secrets.derived("staff"),
        "voucher_key": "0x" + secrets.derived("voucher"),
        "create_key": "sponsor_" + secrets.derived("sponsor's server"),
        "seeded": str(directory / "seeded.json"),
        **({"population": population} if plan.people else {}),
    }
