"""How networks know our users: by an opaque name each, found again by index."""

from typing import NamedTuple

from django.utils.crypto import salted_hmac

from credits.models import AdNetwork, NetworkUser
from credits.networks.references import REFERENCE_LENGTH, is_reference
from credits.networks.registry import ADAPTERS
from gateway.common.owner import ProfileOwner


class KnownTo(NamedTuple):
    """An enabled network, what it rewards, and the user's name there."""

    network: str
    kind: str
    reference: str


def reference_of(*, user: ProfileOwner, network: AdNetwork) -> str:
    """Return the user's name at the network, written down by the first of any number of simultaneous callers."""
    digest = salted_hmac("credits.network-user", f"{network.slug}:{user.pk}", algorithm="sha256").hexdigest()
    row = NetworkUser(network=network, user_id=user.pk, reference=digest[:REFERENCE_LENGTH])
    NetworkUser.objects.bulk_create([row], ignore_conflicts=True)
    # A row from before SECRET_KEY was changed keeps its name.
    return NetworkUser.objects.get(network=network, user_id=user.pk).reference


def references_of(*, user: ProfileOwner) -> list[KnownTo]:
    """Return the user's name at every enabled network, by the networks' slugs."""
    enabled = list(AdNetwork.objects.filter(is_enabled=True, slug__in=ADAPTERS).order_by("slug"))
    named = dict(
        NetworkUser.objects.filter(user_id=user.pk, network__in=enabled).values_list(
            "network_id", "reference"
        )
    )
    return [
        KnownTo(
            network=network.slug,
            kind=ADAPTERS[network.slug].kind,
            reference=named.get(network.pk) or reference_of(user=user, network=network),
        )
        for network in enabled
    ]


def user_named(*, network: AdNetwork, reference: str) -> ProfileOwner | None:
    """Return the user whom the network knows by that name, or None."""
    if not is_reference(reference):
        return None
    row = NetworkUser.objects.select_related("user").filter(network=network, reference=reference).first()
    return row.user if row else None
