"""Visit links: one per delivered notification, paid once, for as long as it lives."""

import secrets
from datetime import datetime, timedelta
from decimal import Decimal

from earnings.models import AdNetwork
from earnings.networks.visit_link import VisitLink, sign_visit
from earnings.services import networks
from earnings.services.networks import address_of
from users.models import User

LONGEST_LIFETIME = timedelta(days=366)


def mint(*, user: User, campaign: str, amount: Decimal, lifetime: timedelta, now: datetime) -> str:
    """
    Return a link that earns the user `amount` units of the visit link's rate, once, before it expires.

    Raises:
        ValueError: visit links are not enabled or have no secret; `amount` or `lifetime` is not positive, or more
            than a link can carry; or the campaign's name is too long for one.
    """
    if not amount.is_finite() or amount <= 0 or not timedelta() < lifetime <= LONGEST_LIFETIME:
        raise ValueError("a visit is worth something for some time, a year at most")
    network = AdNetwork.objects.filter(slug=VisitLink.slug, is_enabled=True).first()
    if network is None or not network.sealed_secrets:
        raise ValueError("visit links are not enabled or have no secret")
    token = sign_visit(
        user_ref=networks.reference_of(user=user, network=network),
        campaign=campaign,
        amount=amount,
        jti=secrets.token_hex(16),
        expires_at=now + lifetime,
        secret=networks.live_secrets(network)[0],
    )
    return address_of(slug=VisitLink.slug, token=token)
