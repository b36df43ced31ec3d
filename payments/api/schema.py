"""The payment paths in the OpenAPI document: their errors, descriptions and examples."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from gateway.common import errors as common
from gateway.common.errors import DomainError
from gateway.common.problems import BODY_ERRORS, problem_responses
from payments import errors


class DeleteWithBody(AutoSchema):
    """Describes the body of a DELETE, which generators leave out; it is optional, since a query will do."""

    def _get_request_body(self, direction: str = "request") -> Any:
        method, self.method = self.method, "POST"
        try:
            body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        finally:
            self.method = method
        return {**body, "required": False}


IMMEDIATELY = OpenApiParameter(
    "cancelImmediately", bool, description="Instead of the body, where a proxy drops it; both must agree."
)


_ALWAYS: tuple[type[DomainError], ...] = (
    common.NotAuthenticated,
    errors.BillingUnavailable,
    errors.BillingInProgress,
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
    errors.PaymentMethodRequired,
    errors.CardDeclined,
    errors.AuthenticationRequired,
)
REPORT = problem_responses(common.NotAuthenticated, errors.BillingUnavailable, errors.NoSubscription)
HOSTED_PAGE = CUSTOMER
INVOICES = problem_responses(
    common.InvalidRequest, common.NotAuthenticated, errors.BillingUnavailable, errors.BillingRefused
)
RECEIPT_EMAIL = problem_responses(common.NotAuthenticated, errors.BillingUnavailable, errors.BillingRefused)
CANCEL = problem_responses(*_ALWAYS, *BODY_ERRORS, errors.NoSubscription)


CUSTOMER_DESCRIPTION = """
Answers the customer; the same one however often it is asked for. No other path needs it first: each makes the
customer where there is none.
""".strip()

SETUP_INTENT_DESCRIPTION = """
Answers a fresh client secret of a setup intent of Stripe. The wallet confirms it with the user's card by Stripe's own
libraries, for instance `stripe.confirmSetup`, under the operator's publishable key. The newest card so captured pays
the subscription. The secret must not be stored or logged.
""".strip()

UPSERT_DESCRIPTION = """
Begins the subscription, or changes the one that runs; a repeat with the same values changes nothing.

* A changed amount applies from the next period. Another currency needs a new subscription: cancel first.
* `cancelAtEndOfBillingPeriod` true ends it with the running period; false, or nothing, lets it go on.
* Where a renewal was not collected (`past_due`, `unpaid`), its open invoice is tried with the newest card.
* 402 `payment-method-required`: no card yet. 402 `card-declined`: see `declineCode`. 402 `authentication-required`:
  the wallet confirms the payment with `clientSecret`, then repeats the request.
""".strip()

REPORT_DESCRIPTION = """
Answers how the subscription stands and what to do next: what the running period has cost, what the next one will, and
what is open because a renewal was not collected. The secret must not be stored or logged.
""".strip()

CARD_PAGE_DESCRIPTION = """
Answers a page of Stripe's that captures a card, for wallets that do not embed Stripe's library: send the browser there.
It leads back to `returnUrl`, with or without a card; then `upsertSubscription`.
""".strip()

PORTAL_PAGE_DESCRIPTION = """
Answers a page of Stripe's where the person sees cards and invoices, and cancels or resumes the subscription; what is
changed there is seen here. It leads back to `returnUrl`.
""".strip()

INVOICES_DESCRIPTION = """
Answers the person's invoices, newest first, with Stripe's page and PDF of each. Request the address in `next`,
unchanged, until it is null. Anybody who has an invoice's address can open it.
""".strip()

RECEIPT_EMAIL_DESCRIPTION = """
Where Stripe sends receipts and reminders. The address is kept at Stripe alone, never here, and forgotten there as soon
as null is sent.
""".strip()

CANCEL_DESCRIPTION = """
Ends the subscription, now or with the running period. Ending it now ends the period's allowance without a refund;
credits stay. Where a proxy drops the body of a DELETE, send `?cancelImmediately=true` or `false`; where both are sent,
they must agree.
""".strip()

_CUSTOMER_ID = "cus_R5pXw0aT2bQ1nD"


def _answer(name: str, value: dict[str, Any]) -> OpenApiExample:
    return OpenApiExample(name, response_only=True, status_codes=["200"], value=value)


CUSTOMER_EXAMPLES = [
    _answer(
        "Linked",
        {"walletAddress": "0xBB645D97B0c7D101ca0d73131e521fe89B463BFD", "paymentsCustomerId": _CUSTOMER_ID},
    )
]
SETUP_INTENT_EXAMPLES = [_answer("Ready", {"clientSecret": "seti_1QX_secret_R5p"})]
UPSERT_EXAMPLES = [
    OpenApiExample("25.50 a month", request_only=True, value={"subscriptionCost": 2550, "currency": "usd"}),
    _answer(
        "Running",
        {
            "subscriptionId": "sub_1QXw0aT2bQ1nD",
            "subscriptionFor": _CUSTOMER_ID,
            "subscriptionAmount": "$25.50",
        },
    ),
]
REPORT_EXAMPLES = [
    _answer(
        "A renewal was declined",
        {
            "subscriptionId": "sub_1QXw0aT2bQ1nD",
            "status": "past_due",
            "currency": "usd",
            "paidCost": None,
            "nextCost": 2550,
            "currentPeriodEnd": 1_798_761_600,
            "cancelAtEndOfBillingPeriod": False,
            "openCost": 2550,
            "clientSecret": "",
            "declineCode": "insufficient_funds",
            "nextStep": "capture-card",
        },
    )
]
CANCEL_EXAMPLES = [
    OpenApiExample("With the period", request_only=True, value={"cancelImmediately": False}),
    _answer(
        "Ends with the period",
        {"success": True, "customerIdCancelledFor": _CUSTOMER_ID, "cancelledInstantly": False},
    ),
]
HOSTED_PAGE_EXAMPLES = [
    OpenApiExample("From a wallet", request_only=True, value={"returnUrl": "https://wallet.example/credits"}),
    _answer("Ready", {"url": "https://checkout.stripe.com/c/pay/cs_test_a1"}),
]
INVOICES_EXAMPLES = [
    _answer(
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
