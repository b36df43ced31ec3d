"""`stack.json`: everything a person or a program needs to play with a running stack."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from devstack.demo_profiles import described
from devstack.private_file import write_json
from devstack.secrets_file import Staff
from devstack.services import Services
from devstack.stripe.account import publishable_key
from devstack.world import Profile


def write_stack_file(
    path: Path,
    services: Services,
    *,
    base_url: str,
    staff: Staff,
    profiles: list[Profile],
    networks: dict[str, Any],
) -> None:
    """Describe the running stack; the first profiles have one controller that may do everything."""
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
            "database_url": services.database_url,
            "redis_url": services.redis_url,
            "staff": asdict(staff),
            "profiles": described(profiles),
            "networks": described_networks(
                networks, base_url=base_url, admob_key=services.google.private_key
            ),
        },
    )


def described_networks(networks: dict[str, Any], *, base_url: str, admob_key: str) -> dict[str, Any]:
    """Return, by slug, where each ad network sends its postbacks and what it signs them with."""
    return {
        slug: {
            "address": f"{base_url}/api/postbacks/{slug}" + (f"/{known['token']}" if known["token"] else ""),
            "secret": admob_key if slug == "admob" else known["secret"],
            "kind": known["kind"],
            "rate": known["rate"],
            "hold_hours": known["hold_hours"],
        }
        for slug, known in networks.items()
    }
