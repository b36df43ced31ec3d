"""A user who pays: requests to the services, and the rows that result."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self, cast

from credits.models import CreditEntry
from payments.models import Customer, Payout, Subscription
from payments.services import customers, subscriptions
from payments.services.subscriptions import SubscriptionRequest
from relay.services.accepting.quota import Quota, quota_of
from tests.payments.stripe_accounts import VISA, StripeAccount
from users.models import User

if TYPE_CHECKING:

    class Month(Payout):
        """A payout of a subscription, which always has a period."""

        subscription: Subscription
        period_start: datetime
        period_end: datetime


@dataclass
class Payer:
    """A user of the service, and their Stripe account."""

    account: StripeAccount
    user: User

    def with_card(self, card: str = VISA) -> Self:
        """Become a customer and capture a card."""
        self.account.capture(self.customer.stripe_customer_id, card)
        return self

    @property
    def customer(self) -> Customer:
        """The customer row, made on first use."""
        return customers.ensure_customer(user=self.user, now=self.account.now())

    def upsert(self, amount: int, currency: str = "usd", *, cancels: bool = False) -> Subscription:
        """Create or change the subscription."""
        request = SubscriptionRequest(amount, currency, cancels_at_period_end=cancels)
        return subscriptions.upsert(user=self.user, request=request, now=self.account.now())

    def cancel(self, *, immediately: bool) -> Subscription:
        """Cancel the subscription."""
        return subscriptions.cancel(user=self.user, immediately=immediately, now=self.account.now())

    @property
    def subscription(self) -> Subscription:
        """The newest subscription row."""
        return Subscription.objects.filter(user=self.user).latest("pk")

    @property
    def payouts(self) -> "list[Month]":
        """The payouts of subscriptions in the order of their periods; of equal ones, in the order of their making."""
        rows = Payout.objects.filter(user=self.user, subscription__isnull=False)
        return cast("list[Month]", list(rows.order_by("period_start", "pk")))

    @property
    def payout(self) -> "Month":
        """The newest payout."""
        return self.payouts[-1]

    @property
    def purchases(self) -> list[Payout]:
        """The payouts of purchases in their order."""
        return list(Payout.objects.filter(user=self.user, purchase__isnull=False).order_by("pk"))

    @property
    def balance(self) -> int:
        """The sum of all entries."""
        return sum(CreditEntry.objects.filter(account__user=self.user).values_list("amount", flat=True))

    def quota(self, at: datetime | None = None) -> Quota:
        """Return what the quota path returns."""
        return quota_of(user_id=self.user.pk, now=at or self.account.now())
