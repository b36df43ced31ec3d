"""What a person does with the product's own requests."""

import random
from contextlib import suppress

from gateway.common.errors import DomainError
from payments.errors import NoSubscription
from payments.services import standing
from payments.services.standing import NextStep
from payments.stripe import get_billing_client
from tests.factories import UserFactory
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA, DoubleAccount

_MOST_STEPS = 8


def any_amount() -> int:
    return random.randint(500, 20_000)


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


OWN = ("upsert", "upsert", "upsert", "resume", "cancel", "good_card", "bad_card", "read", "heal", "heal")
