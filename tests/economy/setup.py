"""What the machine acts on in the database: steep levels, networks, a rate, staff, and users who can be billed."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from django.contrib.auth.models import Group
from django.utils import timezone

from credits.models import CreditAccount
from credits.services import entries
from devstack.ad_networks.signing import Reward, sign
from earnings.models import AdNetwork
from earnings.networks.base import RawRequest
from earnings.services import networks
from payments.models import PayoutRate, Subscription
from payments.services import payouts
from payments.stripe.client import InvoiceState
from rewards.models import Badge
from tests.earnings.ad_networks import issue_path_token, set_secret
from tests.economy.model import BACK, NETWORKS, ModelAccount, ModelBadge, ModelNetwork, bonus_on
from tests.economy.rows import query
from tests.factories import make
from tests.staff import member
from users.models import User
from users.services.profiles import user_of_profile

CURRENCY, CREDITS_PER_UNIT, EXPERIENCE_PER_CENT = "usd", 130, 3


@dataclass(frozen=True)
class Setup:
    """What all runs share."""

    badges: list[ModelBadge]
    staff: list[User]
    tokens: dict[str, tuple[str, str]]
    rows: dict[str, AdNetwork]

    def postback(
        self, network: ModelNetwork, user: User, external_id: str, *, amount: int, now: datetime, back: bool
    ) -> RawRequest:
        """Return the network's request about an earning of the user, or about taking it back."""
        reward = Reward(
            external_id=external_id,
            user=networks.reference_of(user=user, network=self.rows[network.slug]),
            amount=str(amount),
            at=now,
            is_reversal=back,
        )
        secret, token = self.tokens[network.slug]
        url = networks.address_of(slug=network.slug, token=token).partition("?")[0]
        sent = sign(network.slug, reward, url=url, secret=secret)
        return RawRequest(
            method="GET",
            url=url,
            query=sent.query.encode(),
            headers={name.lower(): value for name, value in sent.headers.items()},
            path_token=token if sent.path_token is None else sent.path_token,
        )


def set_up() -> Setup:
    """
    Make the levels a hundred times steeper, open the networks, and employ two people.

    Once per database.
    """
    query(
        "UPDATE rewards_badge SET exp_lower_bound = exp_lower_bound / 100, exp_upper_bound = exp_upper_bound / 100"
    )
    PayoutRate.objects.create(
        currency=CURRENCY,
        credits_per_major_unit=CREDITS_PER_UNIT,
        experience_per_minor_unit=EXPERIENCE_PER_CENT,
        valid_from=timezone.now() - timedelta(hours=1),
    )
    # Of two roles, so that each decides what the other asks for.
    staff = [member("superuser"), member("finance")]
    staff[1].groups.add(Group.objects.get(name="support"))
    opened = {network.slug: _open(network) for network in NETWORKS}
    rows = {network.slug: AdNetwork.objects.get(slug=network.slug) for network in NETWORKS}
    return Setup([_model_of(badge) for badge in Badge.objects.all()], staff, opened, rows)


def _open(network: ModelNetwork) -> tuple[str, str]:
    """Return the secret that it signs with, and the end of its address."""
    secret = secrets.token_urlsafe(24)
    set_secret(slug=network.slug, secret=secret, now=timezone.now())
    networks.configure(
        slug=network.slug,
        is_enabled=True,
        rate=Decimal(network.rate.numerator) / network.rate.denominator,
        hold_hours=network.hold_hours,
        daily_cap=network.daily_cap or 10**7,
    )
    return secret, issue_path_token(slug=network.slug)


def _model_of(badge: Badge) -> ModelBadge:
    sources = {bonus_on(source): source for source in ("PUSH_ADS", "VIDEO_ADS", "OFFERWALL", "SURVEYS")}
    bonuses = {
        kind: Fraction(getattr(badge, f"bonus_creds_{name.lower()}")) for kind, name in sources.items()
    }
    return ModelBadge(
        track=badge.track,
        begins=badge.exp_lower_bound,
        growth=Fraction(badge.exp_growth_rate),
        bonuses=bonuses | {BACK: Fraction(badge.credits_back_percent)},
        attempts=badge.bonus_daily_check_in_attempts,
        debt=badge.acceptable_credit_debt,
    )


class Subject:
    """A user with an empty account and a subscription that Stripe would call active; and the same on account."""

    def __init__(self, setup: Setup, now: datetime) -> None:
        self.user: User = user_of_profile(profile_address="0x" + secrets.token_hex(20))
        self.account_id = entries.open_account(user_id=self.user.pk).pk
        self.model = ModelAccount(setup.badges)
        self.invoices: list[InvoiceState] = []
        self.subscription = make(Subscription, user=self.user, currency=CURRENCY, current_period_end=now)

    def new_invoice(self, collected: int, now: datetime) -> InvoiceState:
        """Return the paid invoice of a month that begins now."""
        invoice = InvoiceState(
            invoice_id=f"in_{secrets.token_hex(8)}",
            customer_id=self.subscription.customer.stripe_customer_id,
            subscription_id=self.subscription.stripe_subscription_id,
            status="paid",
            billing_reason="subscription_cycle",
            currency=CURRENCY,
            collected_minor=collected,
            period_start=now,
            period_end=now + timedelta(days=30),
            payment_intent_id=f"pi_{secrets.token_hex(8)}",
            paid_at=None,
            is_live=False,
        )
        self.invoices.append(invoice)
        return invoice

    def let_renew(self, renews: bool) -> None:
        """Let the subscription be cancelling, or not any more."""
        self.model.renews = renews
        Subscription.objects.filter(pk=self.subscription.pk).update(cancels_at_period_end=not renews)
        payouts.update_allowance(user=self.user)

    @property
    def account(self) -> CreditAccount:
        """The row, as it is now."""
        return CreditAccount.objects.get(pk=self.account_id)
