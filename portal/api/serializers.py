"""The dashboard and the histories as JSON."""

from decimal import Decimal
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from checkin.api.serializers import DropRangesSerializer, drop_ranges
from checkin.models import DropTable
from checkin.queries import DropLimit
from credits.models import EntrySource
from credits.services import debts
from gateway.common.fields import SAFE_INTEGER_MAX
from gateway.web.serializers import AddressField, HashField
from payments.models import Subscription
from portal.dashboard import AccountSummary, Dashboard
from relay.models import RelayTransaction
from relay.queries.chains import ChainState
from relay.queries.reports import credits_of
from rewards.models import FRACTIONS, TERMS, Badge, Modifier, ModifierType
from users.models import AccountDeletion

# The sources of entries in a list of earnings: all except relay charges.
EARNED = [choice for choice in EntrySource.choices if choice[0] != EntrySource.RELAY_TRANSACTION]


@extend_schema_field(OpenApiTypes.DOUBLE)
class FractionField(serializers.Field[Decimal, Any, float, Any]):
    """An exact fraction as a JSON number."""

    def to_representation(self, value: Decimal) -> float:
        return float(value)


class UserInfoSerializer(serializers.Serializer[Any]):
    credits = serializers.IntegerField(
        source="account.available", help_text="Available credits; negative when in debt."
    )
    subscriptionAmount = FractionField(
        source="subscription_amount",
        help_text="Monthly amount in major units; 0 while `isSubscriber` is false.",
    )
    permanentExp = serializers.IntegerField(source="rewards.progress.permanent_experience")
    subscriptionExp = serializers.IntegerField(source="rewards.progress.subscriber_experience")
    percentToNextPermanentBadge = FractionField(
        source="rewards.permanent_fraction",
        help_text="Completed fraction of the badge's range, 0 to 1; 1 at the top badge.",
    )
    percentToNextSubscriberBadge = FractionField(
        source="rewards.subscriber_fraction",
        help_text="The same for the subscriber badge; 1 if the experience exceeds the range of the badge, which is the "
        "lowest one for users without a paid period.",
    )
    isSubscriber = serializers.BooleanField(source="rewards.is_subscriber")
    canCheckIn = serializers.BooleanField(
        source="check_in.can_check_in",
        help_text="Whether an attempt is left today, check-ins are not paused, and the drop tables are not empty.",
    )


class BadgeSerializer(serializers.Serializer[Any]):
    exp_lower_bound = serializers.IntegerField()
    exp_upper_bound = serializers.IntegerField(
        help_text=f"Lower bound of the next badge; {SAFE_INTEGER_MAX} at the top."
    )
    exp_growth_rate = FractionField(help_text="Multiplies experience gained on this track.")
    related_check_in_drops = serializers.IntegerField(help_text="The drop table in force; 0 without one.")

    def get_fields(self) -> dict[str, Any]:
        declared = super().get_fields()
        drops = declared.pop("related_check_in_drops")
        terms = {
            term: FractionField() if term in FRACTIONS else serializers.IntegerField()
            for term in TERMS
            if term not in declared
        }
        return {**declared, **terms, "related_check_in_drops": drops}


class ProfileField(AddressField):
    """The address of the signed-in profile."""

    def __init__(self, **options: Any) -> None:
        super().__init__(source="*", **options)

    def to_representation(self, value: Any) -> str:
        return str(self.context["profile_address"])


class ModifierSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    related_user = ProfileField()
    modifier_type = serializers.ChoiceField(choices=ModifierType.choices)
    value = FractionField(
        help_text="The fraction that it adds to the badges' bonus; all of a type add at most 1."
    )
    expires_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class EarningSerializer(serializers.Serializer[Any]):
    """An entry of the ledger other than a relay charge; reversals are negative."""

    related_user = ProfileField(read_only=True)
    credit_source = serializers.ChoiceField(source="source", choices=EARNED)
    credits_earned = serializers.IntegerField(source="amount")
    credits_before = serializers.IntegerField(source="balance_before")
    credits_after = serializers.IntegerField(source="balance_after")


class DatedEarningSerializer(EarningSerializer):
    created_at = serializers.DateTimeField()


class TransactionSerializer(serializers.Serializer[Any]):
    """A relay transaction; until it is settled, the balances are expected ones."""

    transaction_hash = HashField()
    related_user = AddressField(source="profile_address")
    expected_cost = serializers.IntegerField()
    real_cost = serializers.SerializerMethodField(help_text="0 until settled.")
    credits_before = serializers.SerializerMethodField()
    credits_after = serializers.SerializerMethodField()
    status = serializers.ChoiceField(choices=RelayTransaction.Status.choices)

    def get_real_cost(self, row: Any) -> int:
        # For a call that a sponsor pays, only the user's part.
        return credits_of(row)[0] if row.sponsor and row.settled_at else int(row.real_cost)

    def get_credits_before(self, row: Any) -> int:
        return credits_of(row)[1]

    def get_credits_after(self, row: Any) -> int:
        return credits_of(row)[2]


class DatedTransactionSerializer(TransactionSerializer):
    created_at = serializers.DateTimeField()
    settled_at = serializers.DateTimeField(allow_null=True)
    failure_code = serializers.CharField(
        help_text="Reason of a failure or cancellation, such as `reverted`; otherwise empty."
    )
    paidBy = serializers.SerializerMethodField(
        help_text="`user`, or the name of the sponsor that pays the call or a part of it."
    )

    chainId = serializers.IntegerField(source="chain_id", help_text="The chain of the transaction.")

    def get_paidBy(self, row: Any) -> str:  # noqa: N802 - REST framework's name for the field
        return row.sponsor or "user"


class DeletionResponseSerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(
        choices=AccountDeletion.Status.choices,
        help_text="`requested`: subscription and customer at Stripe are being deleted. `billing-ended`: the account is "
        "erased once all calls have ended. Then `erased`.",
    )
    requestedAt = serializers.DateTimeField(source="requested_at")
    kept = serializers.SerializerMethodField(
        help_text="What stays that can be linked to the profile, and until when."
    )

    def get_kept(self, row: AccountDeletion) -> str:
        return _KEPT


_KEPT = (
    "A keyed digest of the profile's address, if the account owes credits, or has paid or earned some within "
    f"{debts.KEPT.days} days. It is deleted after {debts.KEPT.days} days, or {debts.KEPT_IN_DEBT.days} while credits "
    "are owed, which the next account of the profile takes over."
)


class ProfileResponseSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(
        help_text="At most 80 characters chosen by the profile's owner; empty for none."
    )
    picture = serializers.CharField(
        allow_null=True,
        help_text="A `data:` URL of a PNG, JPEG, GIF or WebP, at most 256 KiB; null for none.",
    )


class AccountResponseSerializer(serializers.Serializer[Any]):
    profileAddress = AddressField(source="user.profile_address")
    balance = serializers.IntegerField(
        source="account.balance", help_text="All credits; negative when in debt."
    )
    held = serializers.IntegerField(
        source="account.held",
        help_text="Held for relay transactions in progress, or undone purchases.",
    )
    available = serializers.IntegerField(source="account.available", help_text="`balance` less `held`.")
    debtLimit = serializers.IntegerField(
        source="debt_limit",
        help_text="How far `available` may fall below 0: what the badges allow, and at most the credits kept of "
        "payments and earnings.",
    )
    totalQuota = serializers.IntegerField(
        source="quota.total", help_text="Credits paid out for the current period; 0 without one."
    )
    resetDate = serializers.IntegerField(
        source="quota.reset_date", help_text="End of the period in unix seconds; -1 without one."
    )
    permanentBadge = serializers.CharField(source="rewards.permanent_badge.name", help_text="Its name.")
    subscriberBadge = serializers.CharField(
        source="rewards.subscriber_badge.name",
        help_text="Its name; the lowest badge's for users without a paid period.",
    )
    subscriptionStatus = serializers.ChoiceField(
        source="subscription_status",
        choices=Subscription.Status.choices,
        allow_null=True,
        help_text="Stripe's status; null for a user who never had a subscription.",
    )

    subscriptionAmountFrom = serializers.SerializerMethodField(
        help_text="When the dashboard's `subscriptionAmount` is first charged, in unix seconds: a changed amount "
        "applies from the next period. -1 where it already applies, or without a subscription."
    )
    cashbackRemainder = FractionField(
        source="rewards.cashback_remainder",
        help_text="Cashback below one credit; it is added to the next cashback.",
    )
    checkInDropsLimitedBy = serializers.ChoiceField(
        source="drop_limit",
        choices=[limit.value for limit in DropLimit],
        help_text="Why the check-in's drop table shows zeros. `nothing-earned`: until a payment was collected or an "
        "earning posted, only experience can drop. `no-drop-table`: the operator has published none for the "
        "badge. `nothing`: the types with zeros are not in the badges' tables.",
    )
    checkInDropsHint = serializers.SerializerMethodField(
        help_text="The same as a sentence for display; empty for `nothing`."
    )

    def get_subscriptionAmountFrom(self, summary: AccountSummary) -> int:  # noqa: N802 (the name on the wire)
        return -1 if summary.amount_from is None else int(summary.amount_from.timestamp())

    def get_checkInDropsHint(self, summary: AccountSummary) -> str:  # noqa: N802 (the name on the wire)
        return _HINTS[summary.drop_limit]


_HINTS = {
    DropLimit.NOTHING: "",
    DropLimit.NOTHING_EARNED: "Credits and bonuses drop after your first payment or earning.",
    DropLimit.NO_DROP_TABLE: "Nothing can drop at the moment. Contact support.",
}


class ServedChainSerializer(serializers.Serializer[Any]):
    chainId = serializers.IntegerField(help_text="The id of the chain.")
    name = serializers.CharField(help_text="The chain's name.")
    currency = serializers.CharField(help_text="The chain's native currency, in which gas is paid.")
    creditWei = serializers.CharField(
        help_text="The price of a credit now: wei of the currency per credit, as text."
    )
    creditWeiFrom = serializers.IntegerField(help_text="Since when this price is in force, in unix seconds.")
    explorerUrl = serializers.CharField(help_text="URL of a block explorer; empty without one.")
    relayerUrl = serializers.URLField(help_text="Base URL of `/execute` and `/quota` for LSP-15 wallets.")
    state = serializers.ChoiceField(
        choices=[state.value for state in ChainState],
        help_text="`accepting`: the chain takes calls. `paused`: the operator takes no new calls, or the chain's price "
        "of a credit is outdated. `away`: no node of the chain responds.",
    )


class ServiceResponseSerializer(serializers.Serializer[Any]):
    chainId = serializers.IntegerField(help_text="The id of the home chain, on which profiles sign in.")
    currency = serializers.CharField(help_text="The home chain's native currency, in which gas is paid.")
    creditWei = serializers.CharField(help_text="The price of a credit on the home chain now, as text.")
    creditWeiFrom = serializers.IntegerField(help_text="Since when this price is in force, in unix seconds.")
    explorerUrl = serializers.CharField(help_text="URL of a block explorer; empty without one.")
    relayerUrl = serializers.URLField(help_text="Base URL of `/execute` and `/quota` for LSP-15 wallets.")
    chains = ServedChainSerializer(many=True, help_text="All chains of the service, the home chain first.")
    billingCurrencies = serializers.ListField(
        child=serializers.CharField(), help_text="Currencies of subscriptions."
    )


class DashboardSerializer(serializers.Serializer[Any]):
    userInfo = UserInfoSerializer()
    permanentBadge = BadgeSerializer()
    subscriberBadge = BadgeSerializer(help_text="The lowest one for users without a paid period.")
    modifiers = ModifierSerializer(many=True, help_text="Active ones.")
    earningHistory = EarningSerializer(many=True, help_text="The newest 100, newest first.")
    transactionHistory = TransactionSerializer(many=True, help_text="The newest 100, newest first.")
    checkInDropTable = DropRangesSerializer()


def dashboard_members(dashboard: Dashboard) -> dict[str, Any]:
    rewards, tables = dashboard.rewards, dashboard.check_in.tables
    return {
        "userInfo": dashboard,
        "permanentBadge": _badge(rewards.permanent_badge, tables.permanent),
        "subscriberBadge": _badge(rewards.subscriber_badge, tables.subscriber),
        "modifiers": [_modifier(row, counted) for row, counted in rewards.counted_modifiers],
        "earningHistory": dashboard.earnings,
        "transactionHistory": dashboard.transactions,
        "checkInDropTable": drop_ranges(dashboard.check_in.drop_ranges),
    }


def _modifier(row: Modifier, counted: Decimal) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("id", "modifier_type", "expires_at", "created_at")}
    return {**shown, "value": counted}


# Computed once, because REST framework copies all fields at each access.
_BADGE_FIELDS = tuple(map(str, BadgeSerializer().fields))


def _badge(badge: Badge, table: DropTable | None) -> dict[str, Any]:
    terms = {name: getattr(badge, name, None) for name in _BADGE_FIELDS}
    return terms | {
        "exp_upper_bound": SAFE_INTEGER_MAX if badge.exp_upper_bound is None else badge.exp_upper_bound,
        "related_check_in_drops": table.pk if table else 0,
    }
