"""The person page: credits, badges, and their recent changes."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Prefetch
from django.urls import reverse

from accounting.queries import Worth, worth_of
from backoffice import cards
from checkin.models import CheckIn
from credits import queries as credits_queries
from credits.models import CreditAccount, CreditEntry, CreditHold, HoldStatus, HomeCredits
from earnings import queries as earnings_queries
from earnings.models import Postback
from earnings.queries import PersonEarnings
from gateway.chain.config import chain_of
from payments.models import Customer, Payout, Subscription
from payments.stripe.client import is_live_key
from relay.admin.calls import told_of
from relay.models import Attempt, ProfileCreation, RelayTransaction
from rewards import queries as rewards_queries
from rewards.models import Badge
from rewards.queries import CurrentRewards
from sponsors.models import ApiKey, PolicyVersion, Purpose, Sponsor
from users.models import ProfileCard, SignInSession, User
from users.services.profile_cards import card_of, picture_uri

_NEWEST, _PLOTTED, _DAYS = 25, 300, 30


@dataclass(frozen=True, kw_only=True)
class CurrentBadge:
    """A badge, the experience on its track, the progress to the next badge, and whether its benefits count."""

    badge: Badge
    experience: int
    progress: float
    counts: bool


@dataclass(frozen=True, kw_only=True)
class Call:
    """A relay transaction, what it did, and its attempts with the explorer's pages."""

    row: RelayTransaction
    told: str
    attempts: list[tuple[Attempt, str]]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """
    How the profile came to be on one chain: what was asked for, by which sponsor and with which of its API keys, and
    the transaction that deployed it.

    `payer` is the policy that pays, `gift` the sponsor's first credits for the profile, `cost` what the payer paid in
    credits, or what is held, and `coin` what the gas cost; empty before its block.
    """

    how: str
    at: datetime
    chain_id: int
    requested_by: Sponsor | None
    api_key: ApiKey | None
    payer: PolicyVersion | None
    call: RelayTransaction | None
    cost: int | None
    coin: str
    gift: CreditHold | None

    @property
    def is_welcome(self) -> bool:
        """Whether the operator's welcome policy pays."""
        return self.payer is not None and self.payer.purpose == Purpose.WELCOME


@dataclass(frozen=True, kw_only=True)
class Payment:
    """A payout with the credits taken back, and Stripe's page of its invoice."""

    row: Payout
    taken_back: int
    stripe_page: str

    @property
    def bought(self) -> str:
        """The paid item: a period, a pack or an amount."""
        purchase = self.row.purchase
        if purchase is None:
            return f"{self.row.period_start:%Y-%m-%d} to {self.row.period_end:%Y-%m-%d}"
        what = f"pack {purchase.pack}" if purchase.pack else "an amount"
        if purchase.sponsor is not None:
            return f"{what} for the sponsor {purchase.sponsor}"
        return f"{what}, automatically" if purchase.top_up_id else what

    @property
    def is_left(self) -> bool:
        """Whether, according to our rows, money of the payment can still be refunded."""
        return self.row.is_refundable and self.row.returned_minor < self.row.charged_minor


@dataclass(frozen=True, kw_only=True)
class Person:
    """Everything that the page shows about `user`; lists begin with the newest rows."""

    user: User
    card: ProfileCard | None
    account: CreditAccount
    worth: Worth
    rewards: CurrentRewards
    debt_limit: int
    badges: list[CurrentBadge]
    entries: list[CreditEntry]
    balance_line: cards.Chart | None
    spent_by_day: cards.Chart | None
    calls: list[Call]
    origins: list[Origin]
    first_credits: HomeCredits | None
    customer: Customer | None
    customer_page: str
    subscriptions: list[tuple[Subscription, str]]
    payments: list[Payment]
    postbacks: list[Postback]
    counted_earnings: PersonEarnings
    check_ins: list[CheckIn]
    sessions: list[SignInSession]
    lists: dict[str, str]

    @property
    def title(self) -> str:
        """Return the person's name as wallets show it: the profile's name and the first digits of its address."""
        address = str(self.user.profile_address)
        return (
            f"{self.card.name}#{address[2:6]}" if self.card and self.card.name else "Profile without a name"
        )

    @property
    def picture(self) -> str | None:
        return picture_uri(self.card)


def person_of(*, user: User, now: datetime) -> Person:
    """Return the person's page, in a fixed number of statements."""
    account = credits_queries.account_of(user)
    rewards = rewards_queries.current_rewards(user=user, now=now)
    customer = Customer.objects.current().filter(user_id=user.pk).first()
    newest = list(account.entries.order_by("-account_version")[:_PLOTTED]) if account.pk else []
    return Person(
        user=user,
        card=card_of(user),
        account=account,
        worth=worth_of(user, now=now),
        rewards=rewards,
        debt_limit=rewards_queries.debt_limit_of(user=user, now=now),
        badges=_badges(rewards),
        entries=newest[:_NEWEST],
        balance_line=cards.line(
            [(f"{entry.created_at:%d %b %H:%M} UTC", entry.balance_after) for entry in reversed(newest)],
            "credits",
        ),
        spent_by_day=cards.columns(_spent_by_day(user, now), ["spent"]),
        calls=_calls(user),
        origins=_origins(user),
        first_credits=HomeCredits.objects.filter(account__user_id=user.pk).first(),
        customer=customer,
        customer_page=stripe_page("customers", customer.stripe_customer_id) if customer else "",
        subscriptions=[
            (row, stripe_page("subscriptions", row.stripe_subscription_id))
            for row in Subscription.objects.filter(user_id=user.pk).order_by("-pk")[:_NEWEST]
        ],
        payments=_payments(user),
        postbacks=list(
            Postback.objects.filter(user_id=user.pk)
            .select_related("network")
            .order_by("-received_at")[:_NEWEST]
        ),
        counted_earnings=earnings_queries.earnings_of(user_id=user.pk, now=now),
        check_ins=list(CheckIn.objects.filter(user_id=user.pk).order_by("-day", "-attempt")[:_NEWEST]),
        sessions=list(user.sign_in_sessions.order_by("-created_at")[:_NEWEST]),
        lists=_lists(user),
    )


def _badges(rewards: CurrentRewards) -> list[CurrentBadge]:
    progress = rewards.progress
    return [
        CurrentBadge(
            badge=rewards.permanent_badge,
            experience=progress.permanent_experience,
            progress=float(rewards.permanent_fraction),
            counts=True,
        ),
        CurrentBadge(
            badge=rewards.subscriber_badge,
            experience=progress.subscriber_experience,
            progress=float(rewards.subscriber_fraction),
            counts=rewards.is_subscriber,
        ),
    ]


def _calls(user: User) -> list[Call]:
    attempts = Prefetch("attempts", Attempt.objects.order_by("sequence").defer("raw"))
    rows = RelayTransaction.objects.filter(user_id=user.pk).select_related("hold__entry")
    return [
        Call(
            row=row,
            told=told_of(row),
            attempts=[
                (attempt, chain_of(attempt.chain_id).transaction_page(attempt.transaction_hash))
                for attempt in row.attempts.all()
            ],
        )
        for row in rows.prefetch_related(attempts).order_by("-pk")[:_NEWEST]
    ]


def _origins(user: User) -> list[Origin]:
    """Return the requests of sponsors for this profile, and its own copies; oldest first."""
    asked = ProfileCreation.objects.filter(user_id=user.pk).select_related(
        "sponsor", "api_key", *_paid("hold__")
    )
    rows = list(asked.prefetch_related(_mined("hold__relay_transaction__")).order_by("pk")[:_NEWEST])
    calls = RelayTransaction.objects.filter(user_id=user.pk, deploys_profile=True)
    known = [row.hold_id for row in rows if row.hold_id is not None]
    copies = calls.exclude(hold__in=known).select_related(*_paid("hold__")).prefetch_related(_mined(""))
    found = [_origin(row.get_kind_display(), row.created_at, row.chain_id, row, row.hold) for row in rows]
    found += [
        _origin("copy to another chain", call.created_at, call.chain_id, None, call.hold, call)
        for call in copies.order_by("pk")[:_NEWEST]
    ]
    return found


def _paid(hold: str) -> list[str]:
    sponsored = f"{hold}sponsored__"
    return [
        *([f"{hold}relay_transaction"] if hold == "hold__" else []),
        f"{sponsored}sponsor_hold",
        f"{sponsored}version__policy__sponsor",
        f"{sponsored}first_credits__hold",
    ]


def _mined(call: str) -> "Prefetch[Any]":
    mined = Attempt.objects.filter(status=Attempt.Status.MINED, kind=Attempt.Kind.CALL).defer("raw")
    return Prefetch(f"{call}attempts", mined, to_attr="mined")


def _origin(
    how: str,
    at: datetime,
    chain_id: int,
    asked: ProfileCreation | None,
    hold: CreditHold | None,
    call: RelayTransaction | None = None,
) -> Origin:
    call = call or getattr(hold, "relay_transaction", None)
    sponsored = getattr(hold, "sponsored", None)
    paying = sponsored.sponsor_hold if sponsored else hold
    promised = getattr(sponsored, "first_credits", None)
    mined: list[Attempt] = getattr(call, "mined", [])
    return Origin(
        how=how,
        at=at,
        chain_id=chain_id,
        requested_by=asked.sponsor if asked else None,
        api_key=asked.api_key if asked else None,
        payer=sponsored.version if sponsored else None,
        call=call,
        cost=None if paying is None else _cost_of(paying),
        coin=_coin(sum(_wei_of(attempt) for attempt in mined), chain_id) if mined else "",
        gift=promised.hold if promised and promised.digest else None,
    )


def _wei_of(attempt: Attempt) -> int:
    return (attempt.gas_used or 0) * int(attempt.effective_gas_price_wei or 0) + int(attempt.extra_fee_wei)


def _coin(wei: int, chain_id: int) -> str:
    return f"{Decimal(wei) / 10**18:.6f} {chain_of(chain_id).currency}"


def _cost_of(hold: CreditHold) -> int:
    return hold.amount if hold.status == HoldStatus.HELD else hold.captured_amount or 0


def _payments(user: User) -> list[Payment]:
    rows = Payout.objects.filter(user_id=user.pk).select_related("purchase__pack", "purchase__sponsor")
    return [
        Payment(
            row=row,
            taken_back=sum(step.credits for step in row.clawbacks.all()),
            stripe_page=stripe_page("invoices", row.stripe_invoice_id),
        )
        for row in rows.prefetch_related("clawbacks").order_by("-pk")[:_NEWEST]
    ]


def _spent_by_day(user: User, now: datetime) -> list[tuple[str, dict[str, int]]]:
    days = [(now - timedelta(days=age)).date() for age in range(_DAYS - 1, -1, -1)]
    with connection.cursor() as cursor:
        cursor.execute(_SPENT_BY_DAY, [user.pk, days[0]])
        spent: dict[Any, int] = dict(cursor.fetchall())
    return [(f"{day:%d %b}", {"spent": int(spent.get(day, 0))}) for day in days]


_SPENT_BY_DAY = """
SELECT (settled_at AT TIME ZONE 'UTC')::date AS day, sum(hold.captured_amount)
FROM relay_relaytransaction AS call JOIN credits_hold AS hold ON hold.id = call.hold_id
WHERE call.user_id = %s AND call.settled_at >= %s AND hold.captured_amount IS NOT NULL GROUP BY day
"""


def _lists(user: User) -> dict[str, str]:
    models = {
        "entries": "credits_creditentry",
        "calls": "relay_relaytransaction",
        "payments": "payments_payout",
        "check_ins": "checkin_checkin",
        "sessions": "users_signinsession",
    }
    return {
        name: f"{reverse(f'admin:{model}_changelist')}?q={user.profile_address}"
        for name, model in models.items()
    }


_STRIPE = "https://dashboard.stripe.com"
_OF_STRIPES_OWN = "https://api.stripe.com"


def stripe_page(kind: str, stripe_id: str) -> str:
    """Return Stripe's page of one of the `customers`, `subscriptions` or `invoices`; empty with a double of Stripe."""
    if settings.STRIPE_API_BASE not in {"", _OF_STRIPES_OWN} or not stripe_id:
        return ""
    mode = "" if is_live_key(settings.STRIPE_SECRET_KEY) else "test/"
    return f"{_STRIPE}/{mode}{kind}/{stripe_id}"
