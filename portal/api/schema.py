"""Descriptions, error responses and examples of the dashboard and the histories for the OpenAPI document."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from checkin.api.schema import BONUS_RANGES
from gateway.common.errors import InvalidRequest, NotAuthenticated
from gateway.common.problems import problem_responses
from rewards.models import BONUSES, TERMS
from users.errors import FreshSignInRequired

DASHBOARD = problem_responses(NotAuthenticated)
SERVICE = problem_responses()
DELETE_ACCOUNT = problem_responses(NotAuthenticated, FreshSignInRequired)
HISTORY = problem_responses(InvalidRequest, NotAuthenticated)
CHAIN_FILTER = OpenApiParameter(
    "chainId",
    OpenApiTypes.INT,
    OpenApiParameter.QUERY,
    description="List the transactions of this chain only.",
)


DASHBOARD_DESCRIPTION = """
Everything that a wallet shows about its user in one response: credits, experience on both tracks, the current badges,
active modifiers, the newest 100 earnings and relay transactions, and the drop table of a check-in. Percentages
are fractions from 0 to 1; bonuses may exceed 1. `credits` are the available credits (balance minus holds), negative in
debt. `/api/user/account` explains zeros in `checkInDropTable`, and when a changed `subscriptionAmount` is first
charged. Older history is at `/api/user/earnings` and `/api/user/transactions`.
""".strip()
ACCOUNT_DESCRIPTION = """
A summary of the signed-in profile's account: balance and held credits, the payout and end of the current period, the
names of the badges, why the drop table of the check-in shows zeros, and when a changed amount is first charged.
""".strip()
DELETE_ACCOUNT_DESCRIPTION = """
Permanently deletes the account of the signed-in profile: all sessions end at once, the subscription is cancelled
without a refund, the customer with the cards is deleted at Stripe, and remaining credits are lost. Calls in progress
end first. Then all personal data is erased; amounts stay for accounting, and proofs of the ledger stay valid.

Requires a sign-in at most ten minutes ago. Until the data is erased, usually within an hour, a sign-in of the profile
gets 401 `account-deleted`; after that it creates a new account.
""".strip()
PROFILE_DESCRIPTION = """
The profile's name and picture (LSP-3), verified against the hash on chain. They are read again shortly after the first
sign-in of a day, if the operator has enabled this.
""".strip()
SERVICE_DESCRIPTION = """
What a wallet needs to know about this service before sign-in. Profiles sign in, and sponsors and cards are managed, on
the home chain; calls are relayed on every chain in `chains`.
""".strip()
EARNINGS_DESCRIPTION = """
All entries of the ledger except relay charges, newest first; reversals are negative. Follow `next` until it is null.
Pages have `limit` rows, by default 100 and at most 500.
""".strip()
TRANSACTIONS_DESCRIPTION = """
The relay transactions of the signed-in profile, newest first. Follow `next` until it is null. Pages have `limit` rows,
by default 100 and at most 500.
""".strip()
HOME_DESCRIPTION = """
Whether the credits last, compared with the user's own use; credits that expire soon; the typical cost of a call, from
which a page computes how many calls the balance pays for; what the user's calls cost each day; and the check-in with
its streak, the time of the next one, and the chances of each drop.
""".strip()
TIMELINE_DESCRIPTION = """
Everything that happened to the account, newest first: relay calls with what they do, price and failure; check-ins with
their drop; payouts, earnings, reversals and corrections. The cashback of a call is part of its row. Follow `next` until
it is null.
""".strip()
NOTES_DESCRIPTION = """
The notes that the operator's staff keep about the signed-in profile, as the law on personal data entitles its holder to
read.
""".strip()

_PROFILE = "0x12860139DBD9E9678A08B4c8aAE062302298b05c"


def _badge(lower: int, upper: int, *, bonus: float, back: float, debt: int, drops: int) -> dict[str, Any]:
    return {
        "exp_lower_bound": lower,
        "exp_upper_bound": upper,
        **dict.fromkeys(TERMS, 0),
        **dict.fromkeys(BONUSES, bonus),
        "exp_growth_rate": 1.0,
        "credits_back_percent": back,
        "acceptable_credit_debt": debt,
        "related_check_in_drops": drops,
    }


ACCOUNT_EXAMPLES = [
    OpenApiExample(
        "A subscriber with a call in progress",
        response_only=True,
        value={
            "profileAddress": _PROFILE,
            "balance": 25_500,
            "held": 171,
            "available": 25_329,
            "debtLimit": 500,
            "totalQuota": 25_500,
            "resetDate": 1_798_761_600,
            "permanentBadge": "Bronze",
            "subscriberBadge": "Supporter",
            "subscriptionStatus": "active",
            "subscriptionAmountFrom": -1,
            "cashbackRemainder": 0.575,
            "checkInDropsLimitedBy": "nothing",
            "checkInDropsHint": "",
        },
    )
]
DELETE_ACCOUNT_EXAMPLES = [
    OpenApiExample(
        "It begins",
        response_only=True,
        value={
            "status": "requested",
            "requestedAt": "2026-11-21T10:08:57.759867Z",
            "kept": "A keyed digest of the profile's address, if the account owes credits, …",
        },
    )
]
PROFILE_EXAMPLES = [
    OpenApiExample(
        "A profile with both",
        response_only=True,
        value={"name": "ada", "picture": "data:image/png;base64,iVBORw0KGgo="},
    )
]
SERVICE_EXAMPLES = [
    OpenApiExample(
        "On LUKSO",
        response_only=True,
        value={
            "chainId": 42,
            "currency": "LYX",
            "creditWei": "1000000000000",
            "creditWeiFrom": 1_767_225_600,
            "explorerUrl": "https://explorer.lukso.network",
            "relayerUrl": "https://relay.example.com/api/lsp15",
            "billingCurrencies": ["usd", "eur"],
            "chains": [
                {
                    "chainId": 42,
                    "name": "LUKSO",
                    "currency": "LYX",
                    "creditWei": "1000000000000",
                    "creditWeiFrom": 1_767_225_600,
                    "explorerUrl": "https://explorer.lukso.network",
                    "relayerUrl": "https://relay.example.com/api/lsp15",
                    "state": "accepting",
                },
                {
                    "chainId": 8453,
                    "name": "Base",
                    "currency": "ETH",
                    "creditWei": "1000000000",
                    "creditWeiFrom": 1_796_083_200,
                    "explorerUrl": "https://basescan.org",
                    "relayerUrl": "https://relay.example.com/api/lsp15/8453",
                    "state": "accepting",
                },
            ],
        },
    )
]
DASHBOARD_EXAMPLES = [
    OpenApiExample(
        "A subscriber",
        response_only=True,
        value={
            "userInfo": {
                "credits": 25_341,
                "subscriptionAmount": 25.5,
                "permanentExp": 1_420,
                "subscriptionExp": 2_550,
                "percentToNextPermanentBadge": 0.105,
                "percentToNextSubscriberBadge": 0.85,
                "isSubscriber": True,
                "canCheckIn": True,
            },
            "permanentBadge": _badge(1_000, 5_000, bonus=0.01, back=0.005, debt=100, drops=2),
            "subscriberBadge": _badge(0, 3_000, bonus=0.05, back=0.02, debt=500, drops=11),
            "modifiers": [
                {
                    "id": 7,
                    "related_user": _PROFILE,
                    "modifier_type": "BONUS_PUSH_ADS_CREDITS",
                    "value": 0.05,
                    "expires_at": "2026-11-21T12:08:57.759Z",
                    "created_at": "2026-11-21T10:08:57.759Z",
                }
            ],
            "earningHistory": [
                {
                    "related_user": _PROFILE,
                    "credit_source": "SUBSCRIBED_PAYOUT",
                    "credits_earned": 25_500,
                    "credits_before": 0,
                    "credits_after": 25_500,
                }
            ],
            "transactionHistory": [
                {
                    "transaction_hash": "0x9f4d5f0f2b2f0c8e1a5c9b1f3d0c7a6e5b4d3c2b1a09f8e7d6c5b4a392817161",
                    "related_user": _PROFILE,
                    "expected_cost": 171,
                    "real_cost": 159,
                    "credits_before": 25_500,
                    "credits_after": 25_341,
                    "status": "Success",
                }
            ],
            "checkInDropTable": {
                **BONUS_RANGES,
                "maxExperience": 60,
                "minExperience": 10,
                "maxCredits": 50,
                "minCredits": 5,
            },
        },
    )
]
