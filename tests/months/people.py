"""What a person does with the product's own requests."""

import random
import secrets
from contextlib import suppress

from credits.services import entries
from gateway.common.errors import DomainError
from payments.errors import AuthenticationRequired, CardDeclined, NoSubscription, PaymentMethodRequired
from payments.models import CreditPack
from payments.services import purchases, standing, top_ups
from payments.services.payouts import rate_in_force
from payments.services.standing import NextStep
from payments.services.top_ups import Terms
from payments.stripe import get_billing_client
from tests.factories import UserFactory
from tests.payments.buying import buy
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, DoubleAccount

_MOST_STEPS = 8
_CONSENT = "Buy this pack whenever my credits run low, up to the limit of each month."


def any_amount() -> int:
    return random.randint(500, 20_000)


def any_pack() -> CreditPack:
    return random.choice(list(CreditPack.objects.filter(is_offered=True).order_by("pk")))


class Person:
    """A payer, and everything that they may ask for."""

    def __init__(self, double: DoubleAccount) -> None:
        self.double = double
        self.payer = Payer(double, UserFactory.create())

    def begin(self) -> None:
        """Capture a card and subscribe."""
        self.capture(VISA)
        self.payer.upsert(any_amount())

    def capture(self, card: str) -> None:
        """Capture a card, and make it the default as its webhook does."""
        customer_id = self.payer.customer.stripe_customer_id
        if get_billing_client().is_customer_deleted(customer_id=customer_id):
            with suppress(DomainError):
                self.payer.upsert(any_amount())  # makes another customer, and asks for a card
            customer_id = self.payer.customer.stripe_customer_id
        self.double.capture(customer_id, card)
        get_billing_client().use_newest_card(customer_id=customer_id)

    def upsert(self) -> None:
        self.payer.upsert(any_amount(), cancels=random.random() < 0.2)

    def resume(self) -> None:
        """Ask for the same amount again."""
        self.payer.upsert(self.payer.subscription.amount_minor or any_amount())

    def cancel(self) -> None:
        with suppress(NoSubscription):
            self.payer.cancel(immediately=random.random() < 0.4)

    def good_card(self) -> None:
        self.capture(VISA)

    def bad_card(self) -> None:
        self.capture(random.choice((DECLINES, NEEDS_CONFIRMATION)))

    def read(self) -> None:
        standing.report(user=self.payer.user, now=self.double.now())

    def buy(self) -> None:
        """Buy a pack or an amount that is no pack's price; a card that cannot pay is answered now, later or never."""
        what = random.choice((any_pack(), any_pack(), random.randrange(500, 5_000, 10)))
        key = secrets.token_hex(8)
        try:
            buy(self.payer, what, key)
        except (CardDeclined, PaymentMethodRequired):
            if random.random() < 0.5:
                raise
            self.capture(VISA)
            buy(self.payer, what, key)
        except AuthenticationRequired as error:
            result = random.choice(("none", "failed", "confirmed", "confirmed and repeated"))
            if result == "none":
                raise
            intent = error.members["clientSecret"].split("_secret_")[0]
            self.double.controls.authenticate(intent, succeeds=result != "failed")
            if result == "confirmed and repeated":
                buy(self.payer, what, key)

    def top_up(self) -> None:
        """Turn automatic top-up on, or resume it with other terms."""
        pack = any_pack()
        limit = pack.amount_minor * random.randint(1, 4)
        gives = purchases.credits_of(pack, rate_in_force(currency=pack.currency, at=self.double.now()))
        terms = Terms(random.randint(1, gives), pack.code, limit, _CONSENT)
        top_ups.consent(user=self.payer.user, terms=terms, now=self.double.now())

    def stop_top_up(self) -> None:
        top_ups.withdraw(user=self.payer.user, now=self.double.now())

    def spend(self) -> None:
        """Spend a part of the credits, or all of them."""
        spent = self.payer.balance * random.choice((2, 9, 10)) // 10
        if spent > 0:
            entries.adjust(
                user=self.payer.user, credits=-spent, key=secrets.token_hex(8), actor=None, reason="spent"
            )

    def heal(self) -> int:
        """Follow the report until it names no next step; return the number of steps."""
        taken: list[str] = []
        for steps in range(_MOST_STEPS):
            report = standing.report(user=self.payer.user, now=self.double.now())
            if report.next_step == NextStep.NOTHING and not report.others:
                return steps
            taken.append(f"{report.subscription.status} {report.next_step}")
            try:
                if report.next_step == NextStep.CAPTURE_CARD:
                    self.capture(VISA)
                if report.next_step == NextStep.CONFIRM:
                    self.double.confirm(report.client_secret)
                else:
                    self.payer.upsert(any_amount())
            except DomainError as error:
                taken.append(error.code)
                self._answer(error)
        raise AssertionError(f"no way back from {report}, after {taken}")

    def _answer(self, error: DomainError) -> None:
        if error.members.get("reason") in {"scheduled-subscription", "shared-subscription"}:
            self.payer.cancel(immediately=True)
        elif error.code in {"payment-method-required", "card-declined"}:
            self.capture(VISA)
        elif error.code != "authentication-required":
            raise error


OWN = (
    "upsert", "upsert", "upsert", "resume", "cancel", "good_card", "bad_card", "read", "heal", "heal",
    "buy", "buy", "buy", "buy", "top_up", "top_up", "stop_top_up", "spend", "spend",
)  # fmt: skip
