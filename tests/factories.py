"""
Factories of the rows that tests write past the services.

A factory fills every column that needs a value: by a declaration where a constraint or a reader wants a certain one,
and otherwise by the kind of the column. A parent that the test does not name is a new row.
"""

import random
import secrets
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, TypeVar

from django.contrib.contenttypes.models import ContentType
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import NOT_PROVIDED
from django.utils import timezone
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence, SubFactory, Trait
from factory.django import DjangoModelFactory
from factory.helpers import make_factory

from accounting.models import CoinRate, Month
from checkin.models import CheckIn, DropTable
from credits.models import CreditAccount, CreditEntry
from earnings.models import Postback
from gateway.common.fields import AddressField, HashField, Uint256Field, checksum
from gateway.staff.models import ApprovalRequest, StaffAction
from payments.models import Clawback, Customer, Payout, Refund, StripeEvent, Subscription
from relay.models import Attempt, Relayer, RelayTransaction, ReversedSettlement
from rewards.models import Badge, Modifier
from sponsors.models import Sponsor
from sponsors.services.funding import open_account
from users.models import TrustedImplementation, User
from webhooks.models import Endpoint

_Row = TypeVar("_Row", bound=models.Model)
_MONTH = timedelta(days=30)
_numbers = count(1)


def random_address() -> str:
    """Return a fresh 20-byte address in its EIP-55 form."""
    return checksum("0x" + secrets.token_hex(20))


def make(model: type[_Row], **values: Any) -> _Row:
    """Store a row of any table, with these values, and return it."""
    declared: dict[Any, Any] = {factory._meta.model: factory for factory in RowFactory.__subclasses__()}
    factory = {User: UserFactory, **declared}.get(model) or make_factory(model, FACTORY_CLASS=RowFactory)
    row: _Row = factory.create(**values)
    return row


class UserFactory(DjangoModelFactory[User]):
    """A wallet user with a random profile, or staff by `UserFactory.create(profile_address=None, is_staff=True)`."""

    class Meta:
        model = User

    @classmethod
    def _adjust_kwargs(cls, **kwargs: Any) -> dict[str, Any]:
        kwargs.setdefault("profile_address", random_address())
        kwargs.setdefault("username", kwargs["profile_address"] or f"staff-{secrets.token_hex(6)}")
        return kwargs


class RowFactory(DjangoModelFactory[_Row]):
    """Fills the columns that neither the test nor a declaration names."""

    class Meta:
        abstract = True

    @classmethod
    def _adjust_kwargs(cls, **kwargs: Any) -> dict[str, Any]:
        for field in cls._meta.model._meta.concrete_fields:
            if not {field.name, field.attname} & kwargs.keys() and _needs_value(field):
                kwargs[field.name] = _value(field)
        return kwargs


def _needs_value(field: Any) -> bool:
    filled = field.auto_created or getattr(field, "auto_now_add", False) or getattr(field, "auto_now", False)
    return not (filled or field.has_default() or field.null or field.db_default is not NOT_PROVIDED)


def _value(field: Any) -> Any:
    if field.is_relation:
        return make(field.related_model)
    if field.choices:
        return field.choices[0][0]
    for kind, value in _KINDS:
        if isinstance(field, kind):
            return value(field)
    raise TypeError(f"{field} is of a kind that no row was made of yet")


_KINDS: list[tuple[type, Callable[[Any], Any]]] = [
    (AddressField, lambda _: random_address()),
    (HashField, lambda _: "0x" + secrets.token_hex(32)),
    (Uint256Field, lambda _: next(_numbers)),
    (models.EmailField, lambda _: f"{secrets.token_hex(8)}@example.org"),
    (models.CharField, lambda field: secrets.token_hex(32)[: field.max_length]),
    (models.TextField, lambda _: f"text {secrets.token_hex(4)}"),
    (models.DecimalField, lambda _: Decimal(1)),
    (models.BooleanField, lambda _: True),
    (models.IntegerField, lambda _: next(_numbers)),
    (models.BinaryField, lambda _: secrets.token_bytes(32)),
    (models.JSONField, lambda _: {}),
    (ArrayField, lambda _: []),
    # Later than the columns before, as constraints on pairs of times want it.
    (models.DateTimeField, lambda _: timezone.now() + timedelta(microseconds=next(_numbers))),
    (models.DateField, lambda _: date(2020, 1, 1) + timedelta(days=next(_numbers))),
]


def _stripe_id(prefix: str) -> Any:
    return LazyFunction(lambda: f"{prefix}_{secrets.token_hex(8)}")


_tomorrow = LazyFunction(lambda: timezone.now() + timedelta(days=1))
_user_type = LazyFunction(lambda: ContentType.objects.get_for_model(User))


class CreditAccountFactory(RowFactory[CreditAccount]):
    """The account of a user."""

    class Meta:
        model = CreditAccount

    user = SubFactory(UserFactory)


class SponsorFactory(RowFactory[Sponsor]):
    """A sponsor with its account."""

    class Meta:
        model = Sponsor

    is_frozen = False

    @classmethod
    def _create(cls, model_class: type[Sponsor], *args: Any, **kwargs: Any) -> Sponsor:
        sponsor = Sponsor(**kwargs)
        open_account(sponsor)
        return sponsor


class CreditEntryFactory(RowFactory[CreditEntry]):
    class Meta:
        model = CreditEntry

    amount, balance_before = 5, 2
    balance_after = LazyAttribute(lambda entry: entry.balance_before + entry.amount)


class BadgeFactory(RowFactory[Badge]):
    """One of the badges that there are: a track has no room for another."""

    class Meta:
        model = Badge

    @classmethod
    def _create(cls, model_class: type[Badge], *args: Any, **kwargs: Any) -> Badge:
        return random.choice(Badge.objects.all())


class ModifierFactory(RowFactory[Modifier]):
    class Meta:
        model = Modifier

    expires_at = _tomorrow


class RelayerFactory(RowFactory[Relayer]):
    """A relayer that has sent nothing."""

    class Meta:
        model = Relayer

    next_account_nonce = mined_account_nonce = 0


class RelayTransactionFactory(RowFactory[RelayTransaction]):
    class Meta:
        model = RelayTransaction

    user = SubFactory(UserFactory)
    profile_address = SelfAttribute("user.profile_address")


class AttemptFactory(RowFactory[Attempt]):
    class Meta:
        model = Attempt

    class Params:
        is_mined = Trait(
            status=Attempt.Status.MINED,
            block_number=LazyFunction(lambda: secrets.randbelow(10**6)),
            block_hash=LazyFunction(lambda: "0x" + secrets.token_hex(32)),
            succeeded=True,
            gas_used=21_000,
            effective_gas_price_wei=1,
        )

    relay_transaction = SubFactory(RelayTransactionFactory)
    relayer = SelfAttribute("relay_transaction.relayer")


class ReversedSettlementFactory(RowFactory[ReversedSettlement]):
    """The first settlement of a call, by default a success."""

    class Meta:
        model = ReversedSettlement

    number, status = 0, RelayTransaction.Status.SUCCESS


class CustomerFactory(RowFactory[Customer]):
    class Meta:
        model = Customer

    stripe_customer_id = _stripe_id("cus")


class SubscriptionFactory(RowFactory[Subscription]):
    """An active subscription of a customer of the same user."""

    class Meta:
        model = Subscription

    user = SubFactory(UserFactory)
    customer = SubFactory(CustomerFactory, user=SelfAttribute("..user"))
    stripe_subscription_id, stripe_item_id = _stripe_id("sub"), _stripe_id("si")
    status, amount_minor, currency = Subscription.Status.ACTIVE, 500, "usd"
    current_period_start = LazyFunction(timezone.now)
    current_period_end = LazyAttribute(lambda subscription: subscription.current_period_start + _MONTH)


class StripeEventFactory(RowFactory[StripeEvent]):
    class Meta:
        model = StripeEvent

    stripe_event_id, type, raw_body = _stripe_id("evt"), "invoice.paid", b"{}"
    received_at = LazyFunction(timezone.now)
    next_attempt_at = SelfAttribute("received_at")


class PayoutFactory(RowFactory[Payout]):
    class Meta:
        model = Payout

    subscription = SubFactory(SubscriptionFactory)
    period_start = LazyFunction(timezone.now)
    period_end = LazyAttribute(lambda payout: payout.period_start + _MONTH)


class ClawbackFactory(RowFactory[Clawback]):
    class Meta:
        model = Clawback

    credits = 0


class PostbackFactory(RowFactory[Postback]):
    class Meta:
        model = Postback

    user = SubFactory(UserFactory)


class DropTableFactory(RowFactory[DropTable]):
    class Meta:
        model = DropTable

    badge, author = SubFactory(BadgeFactory), SubFactory(UserFactory)
    # Every badge has had tables before.
    version = Sequence(lambda number: 100 + number)


class CheckInFactory(RowFactory[CheckIn]):
    class Meta:
        model = CheckIn

    possible_results = [{"type": "CREDITS", "value": "5", "minutes": 0}]
    result_place = 0


class MonthFactory(RowFactory[Month]):
    class Meta:
        model = Month

    begins_on = Sequence(lambda number: date(1900 + number, 1, 1))


class CoinRateFactory(RowFactory[CoinRate]):
    class Meta:
        model = CoinRate

    day, price = Sequence(lambda number: date(1900, 1, 1) + timedelta(days=number)), 1


class ApprovalRequestFactory(RowFactory[ApprovalRequest]):
    class Meta:
        model = ApprovalRequest

    kind, changes, requested_roles = "adjust_credits", {"credits": ["", "+5"]}, ["support"]
    content_type, object_id = _user_type, "1"
    expires_at = _tomorrow


class RefundFactory(RowFactory[Refund]):
    """A refund by staff."""

    class Meta:
        model = Refund

    approval = SubFactory(ApprovalRequestFactory)


class StaffActionFactory(RowFactory[StaffAction]):
    class Meta:
        model = StaffAction

    content_type = _user_type


class TrustedImplementationFactory(RowFactory[TrustedImplementation]):
    class Meta:
        model = TrustedImplementation

    address = LazyFunction(random_address)


class EndpointFactory(RowFactory[Endpoint]):
    class Meta:
        model = Endpoint

    origins, event_types = ["https://wallet.example"], ["call.settled"]
