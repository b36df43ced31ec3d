"""The payment endpoints in the OpenAPI document: their errors, descriptions and examples."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.problems import BODY_ERRORS, problem_responses
from payments import errors
from sponsors.api.access import FAULTS as SPONSOR_FAULTS


class DeleteWithBody(AutoSchema):
    """Describes the body of a DELETE, which drf-spectacular leaves out; optional, since a query is accepted too."""

    def _get_request_body(self, direction: str = "request") -> Any:
        method, self.method = self.method, "POST"
        try:
            body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = method
        return {**body, "required": False}


IMMEDIATELY = OpenApiParameter(
    "cancelImmediately",
    bool,
    description="Use this if a proxy drops the body. If both are sent, they must agree.",
)


_ALWAYS: tuple[type[DomainError], ...] = (
    common.NotAuthenticated,
    errors.BillingUnavailable,
    errors.BillingInProgress,
    errors.PaymentProcessing,
    errors.BillingRefused,
)
CUSTOMER = problem_responses(*_ALWAYS, *BODY_ERRORS)
SETUP_INTENT = problem_responses(*_ALWAYS)
UPSERT = problem_responses(
    *_ALWAYS,
    *BODY_ERRORS,
    errors.CurrencyNotSupported,
    errors.AmountTooSmall,
    errors.AmountTooLarge,
    errors.CurrencyFixed,
    errors.AddressRequired,
    errors.PaymentMethodRequired,
    errors.CardDeclined,
    errors.AuthenticationRequired,
)
REPORT = problem_responses(common.NotAuthenticated, errors.NoSubscription)
HOSTED_PAGE = CUSTOMER
INVOICES = problem_responses(
    common.InvalidRequest, common.NotAuthenticated, errors.BillingUnavailable, errors.BillingRefused
)
CARD = RECEIPT_EMAIL = problem_responses(
    common.NotAuthenticated, errors.BillingUnavailable, errors.BillingRefused
)
CANCEL = problem_responses(*_ALWAYS, *BODY_ERRORS, errors.NoSubscription)
PACKS = problem_responses(common.NotAuthenticated)
_PURCHASE: tuple[type[DomainError], ...] = (
    *_ALWAYS,
    *BODY_ERRORS,
    errors.UnknownPack,
    errors.CurrencyNotSupported,
    errors.AmountTooSmall,
    errors.AmountTooLarge,
    errors.RateMissing,
    errors.CurrencyFixed,
    errors.AddressRequired,
    errors.CustomerBalanceLeft,
    errors.PaymentMethodRequired,
    errors.CardDeclined,
    errors.AuthenticationRequired,
    errors.PurchaseDiffers,
    errors.PurchaseClosed,
)
PURCHASE = problem_responses(*_PURCHASE)
UNDO = problem_responses(common.NotAuthenticated, *BODY_ERRORS, errors.UnknownPurchase, errors.UndoRefused)
SPONSOR_PURCHASE = problem_responses(*_PURCHASE, *SPONSOR_FAULTS)
SPONSOR_INVOICES = problem_responses(common.InvalidRequest, *SPONSOR_FAULTS)
SPONSOR_INVOICE = problem_responses(*SPONSOR_FAULTS, errors.BillingUnavailable, errors.BillingRefused)
TOP_UP = problem_responses(common.NotAuthenticated)
SET_TOP_UP = problem_responses(
    *_ALWAYS,
    *BODY_ERRORS,
    errors.UnknownPack,
    errors.CurrencyNotSupported,
    errors.AmountTooSmall,
    errors.AmountTooLarge,
    errors.RateMissing,
    errors.CurrencyFixed,
    errors.PaymentMethodRequired,
)


CUSTOMER_DESCRIPTION = """
Returns the user's customer at Stripe, creating it on the first call. You need not call this first: the other endpoints
create the customer if there is none.
""".strip()

SETUP_INTENT_DESCRIPTION = """
Returns the client secret of a new Stripe setup intent. The wallet confirms it with the user's card through Stripe's
libraries, for instance `stripe.confirmSetup`, with the operator's publishable key. The card that was captured last pays
the subscription. Do not store or log the secret.

Because setup intents can be abused to test stolen cards, their number per day is limited, together with card pages: per
user and per network address.
""".strip()

UPSERT_DESCRIPTION = """
Creates the subscription, or changes the current one; a repeat with the same values changes nothing. It leaves one live
subscription with one item.

* A changed amount applies from the next period. To pay in another currency, cancel the subscription first.
* `cancelAtEndOfBillingPeriod` true ends the subscription with the current period; false, or no value, continues it.
* If the current month was refunded, disputed or not paid (`nextStep` of `subscription`), a new month begins and is
  charged now.
* If a renewal could not be collected (`past_due`, `unpaid`), its open invoice is retried with the newest card.
* 402 `payment-method-required`: there is no card yet. 402 `card-declined`: see `declineCode`. 402
  `authentication-required`: confirm the payment with `clientSecret`, then repeat the request.
* 422 `address-required`: tax depends on the payer's address; let the user save a card with it on the page of
  `createCardPage`, then repeat the request.
""".strip()

REPORT_DESCRIPTION = """
Returns the state of the subscription and the next step: the price of the current and of the next period, and the amount
that is open because a renewal could not be collected. While Stripe is unavailable, `nextCost` is the last known one,
previewed at `nextCostAt`. Do not store or log the secret.
""".strip()

CARD_PAGE_DESCRIPTION = """
Creates a page at Stripe that captures a card, for wallets that do not embed Stripe's library. Redirect the browser to
it. It returns to `returnUrl`, with or without a card; then call `upsertSubscription`.
""".strip()

PORTAL_PAGE_DESCRIPTION = """
Creates a page of Stripe's customer portal, where the user manages cards and invoices, and cancels or resumes the
subscription. The service applies changes made there. The page returns to `returnUrl`.
""".strip()

INVOICES_DESCRIPTION = """
Returns the user's invoices, newest first, with Stripe's page and PDF of each. Follow `next` until it is null. Anyone
with an invoice's URL can open it.
""".strip()

CARD_DESCRIPTION = """
The card that was captured last, which the next payment uses. Only Stripe stores it; it is read there for each request.
""".strip()

RECEIPT_EMAIL_DESCRIPTION = """
The address to which Stripe sends receipts and reminders. Only Stripe stores it, and deletes it when you send null.
""".strip()

CANCEL_DESCRIPTION = """
Ends the subscription, now or at the end of the current period. If staff have created several, it ends all of them.
Ending it now ends the period's allowance without a refund; the user keeps all credits. If a proxy drops the body of a
DELETE, send `?cancelImmediately=true` or `false` in the query; if both are sent, they must agree.
""".strip()

PACKS_DESCRIPTION = """
Returns the packs that the user can buy by `purchaseCredits`, and the currencies for any other amount. While the user
has a subscription, these are of its currency alone, because Stripe charges a customer in one currency at a time.
""".strip()

PURCHASE_DESCRIPTION = """
Buys credits once, with or without a subscription: a pack, or an amount at the subscription's rate. The card that was
captured last pays. `totalQuota`, `resetDate` and `isSubscriber` stay as they are.

* Send a new `Idempotency-Key` for each purchase, and the same one with every repeat of it: the card is charged once.
* 402 `payment-method-required`, `card-declined`: capture a card, then repeat. 402 `authentication-required`: confirm
  the payment with `clientSecret`, then repeat; a confirmed payment gives its credits even without that.
* 409 `currency-fixed`: pay in the currency of the subscription. 422 `address-required`: tax depends on the payer's
  address; let the user save a card with it on the page of `createCardPage`, then repeat with a new key.
* A user has one unpaid purchase: a new key replaces it, and it is voided after 23 hours (409 `purchase-closed`).
* A refund or a dispute takes the credits back.
* Until `undoUntil`, the payer can take it back by `undoPurchase`, while none of its credits is spent.
""".strip()

PURCHASES_DESCRIPTION = """
Returns the user's last ten paid purchases for themselves, newest first. `undoUntil` is set on those that `undoPurchase`
would refund now.
""".strip()

UNDO_DESCRIPTION = """
Refunds a purchase in full to its card, and takes its credits back. It is possible for an hour, or as long as the
operator allows, while at least the credits of the purchase are available. They are held at once and cannot be spent;
`undo` of `purchases` is `done` once Stripe has made the refund. If Stripe refuses it, the credits stay. A repeat does
nothing more. 409 `undo-refused` gives the `reason`.
""".strip()

SPONSOR_PURCHASE_DESCRIPTION = """
Buys credits for a sponsor of which you are a manager or an owner, as `purchaseCredits` does for yourself: your card
pays, Stripe's receipt is yours, and the sponsor has the credits. They give no experience. A refund or a dispute takes
them back from the sponsor, which may leave it below zero.
""".strip()

TOP_UP_DESCRIPTION = """
Automatic top-up buys a pack within a minute after fewer than `threshold` credits are available, at most once in 10
minutes and for at most `monthlyLimit` a month. A pack must give at least `threshold` credits, so that one purchase is
enough. It needs the user's consent, whose text is stored. If the card is
declined or asks for the holder, it pauses (`pausedReason`) until the user consents again. The webhook `credits.top-up`
reports every purchase.
""".strip()

_CUSTOMER_ID = "cus_R5pXw0aT2bQ1nD"


def _response(name: str, value: dict[str, Any]) -> OpenApiExample:
    return OpenApiExample(name, response_only=True, status_codes=["200"], value=value)


CUSTOMER_EXAMPLES = [
    _response(
        "Linked",
        {"walletAddress": "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD", "paymentsCustomerId": _CUSTOMER_ID},
    )
]
SETUP_INTENT_EXAMPLES = [_response("Ready", {"clientSecret": "seti_1QX_secret_R5p"})]
UPSERT_EXAMPLES = [
    OpenApiExample("25.50 a month", request_only=True, value={"subscriptionCost": 2550, "currency": "usd"}),
    _response(
        "Running",
        {
            "subscriptionId": "sub_1QXw0aT2bQ1nD",
            "subscriptionFor": _CUSTOMER_ID,
            "subscriptionAmount": "$25.50",
        },
    ),
]
REPORT_EXAMPLES = [
    _response(
        "A renewal was declined",
        {
            "subscriptionId": "sub_1QXw0aT2bQ1nD",
            "status": "past_due",
            "currency": "usd",
            "subscriptionCost": 2550,
            "interval": "month",
            "isInvoiced": False,
            "paidCost": None,
            "nextCost": 2550,
            "nextCostAt": 1_798_675_200,
            "currentPeriodEnd": 1_798_761_600,
            "cancelAtEndOfBillingPeriod": False,
            "openCost": 2550,
            "clientSecret": "",
            "declineCode": "insufficient_funds",
            "nextStep": "capture-card",
            "latestInvoice": "waiting",
            "isResting": False,
            "endsAt": None,
            "otherSubscriptions": [],
        },
    )
]
CANCEL_EXAMPLES = [
    OpenApiExample("At the end of the period", request_only=True, value={"cancelImmediately": False}),
    _response(
        "Ends with the period",
        {"success": True, "customerIdCancelledFor": _CUSTOMER_ID, "cancelledInstantly": False},
    ),
]
HOSTED_PAGE_EXAMPLES = [
    OpenApiExample("From a wallet", request_only=True, value={"returnUrl": "https://wallet.example/credits"}),
    _response("Ready", {"url": "https://checkout.stripe.com/c/pay/cs_test_a1"}),
]
INVOICES_EXAMPLES = [
    _response(
        "One paid month",
        {
            "next": None,
            "results": [
                {
                    "invoiceId": "in_1QXw0aT2bQ1nD",
                    "number": "R5PXW0AT-0001",
                    "status": "paid",
                    "currency": "usd",
                    "total": 2550,
                    "tax": 0,
                    "open": 0,
                    "createdAt": 1_796_083_200,
                    "pageUrl": "https://invoice.stripe.com/i/acct_1/test_a1",
                    "pdfUrl": "https://pay.stripe.com/invoice/acct_1/test_a1/pdf",
                }
            ],
        },
    )
]
PACKS_EXAMPLES = [
    _response(
        "Packs in US dollars",
        {
            "packs": [
                {
                    "pack": "usd-10",
                    "currency": "usd",
                    "cost": 1000,
                    "amount": "$10.00",
                    "credits": 10_500,
                    "bonusCredits": 500,
                }
            ],
            "currencies": [
                {"currency": "usd", "minimum": 50, "maximum": 1_000_000, "creditsPerMajorUnit": 1000}
            ],
            "ownCurrency": "usd",
            "undoMinutes": 60,
        },
    )
]
PURCHASE_EXAMPLES = [
    OpenApiExample("A pack", request_only=True, value={"pack": "usd-10"}),
    OpenApiExample("An amount", request_only=True, value={"amount": 2550, "currency": "usd"}),
    _response(
        "Paid",
        {
            "purchaseId": "0d9c9e6e-9f0e-4f57-8e5c-0d9f6f1f6a51",
            "status": "paid",
            "pack": "usd-10",
            "cost": 1000,
            "currency": "usd",
            "credits": 10_500,
            "createdAt": 1_796_083_200,
            "undoUntil": 1_796_086_800,
            "undo": "",
        },
    ),
]
_BOUGHT = {
    "purchaseId": "0d9c9e6e-9f0e-4f57-8e5c-0d9f6f1f6a51",
    "status": "paid",
    "pack": "usd-10",
    "cost": 1000,
    "currency": "usd",
    "credits": 10_500,
    "createdAt": 1_796_083_200,
}
PURCHASES_EXAMPLES = [
    _response("Bought just now", {"results": [{**_BOUGHT, "undoUntil": 1_796_086_800, "undo": ""}]})
]
UNDO_EXAMPLES = [
    OpenApiExample("Undo", request_only=True, value={"purchaseId": _BOUGHT["purchaseId"]}),
    _response("The refund is on its way", {**_BOUGHT, "undoUntil": None, "undo": "pending"}),
]
_CONSENT = "Buy the pack for $10.00 whenever I have fewer than 2,000 credits, at most $50.00 a month."
TOP_UP_EXAMPLES = [
    OpenApiExample(
        "Turn on",
        request_only=True,
        value={
            "enabled": True,
            "threshold": 2000,
            "pack": "usd-10",
            "monthlyLimit": 5000,
            "consent": _CONSENT,
        },
    ),
    OpenApiExample("Turn off", request_only=True, value={"enabled": False}),
    _response(
        "On",
        {
            "status": "on",
            "threshold": 2000,
            "pack": "usd-10",
            "cost": 1000,
            "currency": "usd",
            "monthlyLimit": 5000,
            "spentThisMonth": 1000,
            "consent": _CONSENT,
            "consentedAt": 1_796_083_200,
            "pausedReason": "",
            "declineCode": "",
            "lastPurchaseAt": 1_796_169_600,
        },
    ),
]
