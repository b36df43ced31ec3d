"""Getting a started stack ready to serve: profiles, relayers, tables, demo data, webhooks."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from devstack.console import say, step
from devstack.demo_profiles import settle_profiles
from devstack.django_process import run_django
from devstack.environment import django_environment, process_environment
from devstack.private_file import read_json, write_json
from devstack.secrets_file import Secrets, keep_secrets
from devstack.services import Services
from devstack.world import Profile
from devstack.world.deployer import ETHER

_RELAYER_WEI = 1_000 * ETHER


@dataclass(frozen=True)
class Furnished:
    """What the parts of the service need to run."""

    environment: dict[str, str]
    profiles: list[Profile]
    secrets: Secrets
    networks: dict[str, Any]


def furnish(
    services: Services, directory: Path, *, port: int, block_time: float | None, people: int = 0
) -> Furnished:
    """
    Prepare chain, database and Stripe double for the service; what is there already is kept.

    `people` is how many users are generated besides the demo profiles.
    """
    secrets = keep_secrets(directory / "secrets.json")
    settings = django_environment(services, secrets, port=port, block_time=block_time)
    write_json(directory / "environment.json", settings)
    environment = process_environment(settings)
    with step("profiles with controllers, relayers with LYX"):
        profiles = settle_profiles(services.world, directory / "profiles.json")
        services.world.fund(_RELAYER_WEI, *secrets.relayer_addresses)
    _forget_rows_of_another_chain(services, directory / "database.json")
    services.stripe.controls.set_webhook_endpoint(
        f"{settings['PUBLIC_URL']}/webhooks/stripe", services.stripe.webhook_secret
    )
    with step("database migrations and demo data"):
        plan, networks = directory / "demo.json", directory / "networks.json"
        population = {"population": {"seed": secrets.population, "people": people}} if people else {}
        demo = _demo_plan(services, secrets, profiles)
        write_json(plan, {**demo, "networks": str(networks), **population})
        run_django(directory / "log" / "demo.log", environment, "-m", "devstack.demo", str(plan))
    return Furnished(environment, profiles, secrets, read_json(networks))


def _forget_rows_of_another_chain(services: Services, path: Path) -> None:
    """A database that speaks of transactions which this chain never saw is of no use to anyone."""
    identity = services.world.identity
    if read_json(path).get("world", identity) != identity:
        say("  · the chain began anew, so the database and the Stripe double do too")
        services.postgres.forget_database()
        services.stripe.controls.reset()
    write_json(path, {"world": identity})


def _demo_plan(services: Services, secrets: Secrets, profiles: list[Profile]) -> dict[str, object]:
    contracts = services.world.implementations
    return {
        "implementations": {"profile": contracts.universal_profile, "key-manager": contracts.key_manager},
        "profiles": [profile.profile_address for profile in profiles],
        "staff": asdict(secrets.staff),
    }
