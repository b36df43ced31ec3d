"""Whatever Stripe refuses for good ends, says why to the person who can act, and blocks nothing after it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from gateway.common.errors import DomainError
from payments.errors import AddressRequired, BillingRefused, BillingUnavailable, CurrencyFixed
from payments.models import AutoTopUp, BillingOperation, CreditPack, Purchase, Refund
from payments.services import customers, operations, refunds, self_service, top_ups
from payments.services.top_ups import COOLDOWN
from tests.factories import ApprovalRequestFactory, UserFactory
from tests.payments.buying import buy, new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import NEEDS_CONFIRMATION, DoubleAccount
from tests.payments.topping_up import Consent, consent, pack, run
from tests.payments.webhook_events import process_all_events

__all__ = ["consent", "pack"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("impatient")]
AMOUNT, BACK = 1_234, "https://wallet.example/back"


@dataclass(frozen=True)
class Refusal:
    """A response of Stripe that stays the same, the error that it becomes, and the reason that is stored."""

    status: int
    code: str | None
    message: str
    error: type[DomainError]
    reason: str
    words: str


REFUSALS = (
    Refusal(
        400,
        None,
        "You cannot combine currencies on a single customer. This customer has an active subscription, subscription "
        "schedule, discount, quote, or invoice item with currency eur",
        CurrencyFixed,
        "currency-fixed",
        "Choose EUR",
    ),
    Refusal(
        400,
        "customer_tax_location_invalid",
        "The customer's location isn't recognized.",
        AddressRequired,
        "customer_tax_location_invalid",
        "full address",
    ),
    Refusal(
        403,
        None,
        "The provided key does not have the required permissions for this endpoint. Having the 'rak_any_write' "
        "permission would allow this request to continue.",
        BillingRefused,
        "rak_any_write",
        "operator",
    ),
    Refusal(404, "resource_missing", "No such thing", BillingRefused, "resource_missing", "does not know"),
    Refusal(
        400,
        "amount_too_small",
        "Amount must convert to at least 50 cents. 0.60 converts to approximately 0.41.",
        BillingRefused,
        "amount_too_small",
        "Choose a larger one",
    ),
    Refusal(
        400, "parameter_unknown", "Received unknown parameter", BillingRefused, "parameter_unknown", "refused"
    ),
)


@dataclass(frozen=True)
class Operation:
    """A command to Stripe: what leads to it, the request that Stripe refuses, and where the reason is kept."""

    path: str
    act: Callable[[Payer, CreditPack], Any]
    reasons: Callable[[], list[str]]
    method: str = "POST"
    is_subscribed: bool = False


def _nowhere() -> list[str]:
    return []


def _of_operations() -> list[str]:
    rows = BillingOperation.objects.filter(status="refused")
    return list(rows.order_by("created_at").values_list("outcome", flat=True))


def _of_purchases() -> list[str]:
    rows = Purchase.objects.filter(status="void")
    return list(rows.order_by("created_at").values_list("failure_code", flat=True))


def _of_refunds() -> list[str]:
    rows = Refund.objects.filter(status="refused").exclude(last_error="")
    return list(rows.order_by("created_at").values_list("outcome", flat=True))


def _refund(payer: Payer, pack: CreditPack) -> object:
    refund = Refund.objects.create(
        payout=payer.payout,
        amount_minor=1,
        approval=ApprovalRequestFactory.create(),
        created_at=payer.account.now(),
    )
    return refunds.send(refund_id=str(refund.pk), now=payer.account.now())


def _page(page: Callable[..., str]) -> Callable[[Payer, CreditPack], object]:
    return lambda payer, _: page(user=payer.user, return_url=BACK, now=payer.account.now())


OPERATIONS: dict[str, Operation] = {
    "create a customer": Operation(
        "/v1/customers",
        lambda payer, _: Payer(payer.account, UserFactory.create()).customer,
        _of_operations,
    ),
    "subscribe": Operation("/v1/subscriptions", lambda payer, _: payer.upsert(AMOUNT), _of_operations),
    "change the amount": Operation(
        "/v1/subscriptions/", lambda payer, _: payer.upsert(2 * AMOUNT), _of_operations, is_subscribed=True
    ),
    "cancel with the period": Operation(
        "/v1/subscriptions/",
        lambda payer, _: payer.cancel(immediately=False),
        _of_operations,
        is_subscribed=True,
    ),
    "cancel at once": Operation(
        "/v1/subscriptions/",
        lambda payer, _: payer.cancel(immediately=True),
        _of_operations,
        method="DELETE",
        is_subscribed=True,
    ),
    "buy: the invoice": Operation("/v1/invoices", buy, _of_purchases),
    "buy: its line": Operation("/v1/invoiceitems", buy, _of_purchases),
    "buy: its payment": Operation("/v1/invoices/", buy, _of_purchases),
    "refund": Operation("/v1/refunds", _refund, _of_refunds, is_subscribed=True),
    "capture a card": Operation(
        "/v1/setup_intents",
        lambda payer, _: customers.setup_secret(user=payer.user, now=payer.account.now()),
        _nowhere,
    ),
    "open the card page": Operation("/v1/checkout/sessions", _page(self_service.card_page), _nowhere),
    "open the portal": Operation("/v1/billing_portal/sessions", _page(self_service.portal_page), _nowhere),
    "set the receipts' address": Operation(
        "/v1/customers/",
        lambda payer, _: self_service.set_receipt_email(
            user=payer.user, email="someone@example.com", now=payer.account.now()
        ),
        _nowhere,
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_that_stripe_refuses_ends_with_its_reason_and_blocks_nothing(
    double: DoubleAccount, payer: Payer, pack: CreditPack, name: str
) -> None:
    operation = OPERATIONS[name]
    if operation.is_subscribed:
        payer.upsert(AMOUNT)
        process_all_events(double)
    for refusal in REFUSALS:
        before = operation.reasons()
        double.controls.fail(
            refusal.status,
            code=refusal.code,
            message=refusal.message,
            method=operation.method,
            path=operation.path,
            count=None,
        )
        with pytest.raises(refusal.error) as refused:
            operation.act(payer, pack)
        double.controls.clear_faults()
        assert type(refused.value) is refusal.error
        assert refusal.words in refused.value.detail
        if operation.reasons is not _nowhere:
            assert sorted(operation.reasons()) == sorted([*before, refusal.reason])
        _assert_nothing_waits()
    assert buy(payer, pack).status == "paid"
    assert payer.upsert(3 * AMOUNT).amount_minor == 3 * AMOUNT
    assert not double.rows("/v1/invoices", status="draft")


def _assert_nothing_waits() -> None:
    assert not BillingOperation.objects.filter(status="pending").exists()
    assert not Purchase.objects.filter(status="open").exists()
    assert not Refund.objects.filter(status="pending").exists()


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.reason)
def test_a_refused_top_up_pauses_with_its_reason_until_a_new_consent(
    double: DoubleAccount, payer: Payer, consent: Consent, refusal: Refusal
) -> None:
    consent()
    double.controls.fail(
        refusal.status,
        code=refusal.code,
        message=refusal.message,
        path="/v1/invoices",
        method="POST",
        count=None,
    )
    assert run(double) == 0
    double.controls.clear_faults()
    paused: dict[type[DomainError], str] = {
        CurrencyFixed: "currency-fixed",
        AddressRequired: "address-required",
    }
    reason = paused.get(refusal.error, "billing-refused")
    assert AutoTopUp.objects.get().paused_reason == Purchase.objects.get().failure_code == reason
    _assert_nothing_waits()
    consent()
    assert run(double, after=COOLDOWN * 2) == 1


def test_a_pack_in_another_currency_than_the_subscription_is_refused_before_anything_is_stored(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int]
) -> None:
    payer.upsert(AMOUNT, "eur")
    requests = len(double.controls.requests())
    for ask in (
        lambda: buy(payer, pack),
        lambda: top_ups.consent(
            user=payer.user, terms=top_ups.Terms(1, pack.code, 10**6, "Buy this pack."), now=double.now()
        ),
    ):
        with pytest.raises(CurrencyFixed) as refused:
            ask()
        assert refused.value.members == {"currency": "eur"}
    assert len(double.controls.requests()) == requests
    assert not Purchase.objects.exists()
    assert not AutoTopUp.objects.exists()
    assert buy(payer, new_pack(currency="eur")).status == "paid"


def test_stripes_own_word_about_the_currency_ends_a_purchase_and_a_later_one_is_paid(
    double: DoubleAccount, payer: Payer, pack: CreditPack, rates: dict[str, int]
) -> None:
    """The customer's subscription belongs to another system, so only Stripe knows its currency."""
    product = double.v1.products.create({"name": "hats"}).id
    price = {"currency": "eur", "product": product, "unit_amount": 900, "recurring": {"interval": "month"}}
    card = double.v1.payment_methods.list({"customer": payer.customer.stripe_customer_id}).data[0].id
    double.v1.subscriptions.create(
        {
            "customer": payer.customer.stripe_customer_id,
            "items": [{"price_data": price}],
            "default_payment_method": card,
        }
    )
    with pytest.raises(CurrencyFixed, match="You pay in EUR"):
        buy(payer, pack)
    assert (Purchase.objects.get().status, Purchase.objects.get().failure_code) == ("void", "currency-fixed")
    assert buy(payer, new_pack(currency="eur")).status == "paid"


def test_a_purchase_whose_invoice_cannot_be_voided_still_makes_room_for_the_next_one(
    double: DoubleAccount, payer: Payer, pack: CreditPack
) -> None:
    double.capture(payer.customer.stripe_customer_id, NEEDS_CONFIRMATION)
    with pytest.raises(DomainError):
        buy(payer, pack)
    payer.with_card()
    first = Purchase.objects.get()
    double.controls.fail(400, path=f"/v1/invoices/{first.stripe_invoice_id}/void", count=None)
    assert buy(payer, pack).status == "paid"
    first.refresh_from_db()
    assert first.status == "void"
    double.controls.clear_faults()
    double.v1.invoices.pay(first.stripe_invoice_id)  # Its payer opens the hosted page all the same.
    process_all_events(double)
    first.refresh_from_db()
    assert (first.status, len(payer.purchases)) == ("paid", 2)


def test_an_operation_whose_key_has_expired_ends_also_if_stripe_refuses_to_tell_its_state(
    double: DoubleAccount, payer: Payer
) -> None:
    kind = BillingOperation.Kind.UPDATE_SUBSCRIPTION
    begun = operations.begin(
        user=payer.user, kind=kind, parameters={"subscription_id": "sub_1"}, now=double.now()
    )
    later = double.now() + operations.KEY_LIFETIME + timedelta(seconds=1)
    double.controls.fail(403, path="/v1/subscriptions", count=None)
    operations.resume_abandoned(now=later)
    begun.refresh_from_db()
    assert (begun.status, begun.outcome) == ("refused", "permission")


def test_a_key_that_stripe_does_not_accept_says_so_and_asks_nobody_to_repeat(
    double: DoubleAccount, payer: Payer, pack: CreditPack, caplog: pytest.LogCaptureFixture
) -> None:
    double.controls.fail(401, code="api_key_expired", message="Expired API Key provided", count=None)
    with caplog.at_level(logging.ERROR), pytest.raises(BillingUnavailable) as refused:
        buy(payer, pack)
    assert "operator" in refused.value.detail
    assert "epeat" not in refused.value.detail
    assert (refused.value.retry_after or 0) >= 3600
    assert "STRIPE_SECRET_KEY is refused (api_key_expired)" in caplog.text
