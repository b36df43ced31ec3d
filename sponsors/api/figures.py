"""
Figures about a sponsor for its members.

GET /api/sponsors/{name}/overview: credits, how long they last, and your rights.
GET /api/sponsors/{name}/policies: the policies with their newest terms and their usage.
GET /api/sponsors/{name}/spend: spend by day, policy and user.
GET /api/sponsors/{name}/refusals: how many requests each rule refused.
"""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.common import clock
from gateway.common.db import reading_from_replica
from gateway.common.errors import InvalidRequest
from gateway.common.http import PRIVATE
from gateway.common.problems import problem_responses
from gateway.web.serializers import AddressField, rendered
from sponsors.api.access import FAULTS, SponsorViewSet
from sponsors.models import ProfileRule, Purpose, Sponsor
from sponsors.queries.figures import (
    MOST_USERS,
    PolicyFigures,
    budget_of,
    burn_rate_of,
    policies_of,
    refusals_of,
    since_of,
    spend_of,
)
from sponsors.rules.rights import Right

_FAULTS = problem_responses(InvalidRequest, *FAULTS)
_USUAL_DAYS, _MOST_DAYS = 30, 90


class BudgetSerializer(serializers.Serializer[Any]):
    period = serializers.ChoiceField(choices=["day", "month"])
    limit = serializers.IntegerField()
    used = serializers.IntegerField(help_text="Credits charged, or held by calls in progress.")
    resets = serializers.DateTimeField()


class OverviewSerializer(serializers.Serializer[Any]):
    """A sponsor's credits, and your rights."""

    name = serializers.CharField(help_text="The name that calls send as `Relay-Sponsor`.")
    displayName = serializers.CharField()
    isFrozen = serializers.BooleanField(help_text="A frozen sponsor pays for no new call.")
    rights = serializers.ListField(
        child=serializers.ChoiceField(choices=[right.value for right in Right]), help_text="Your rights."
    )
    balance = serializers.IntegerField(help_text="All credits, including those that are held.")
    held = serializers.IntegerField(help_text="Credits set aside for calls in progress.")
    available = serializers.IntegerField(help_text="Credits available for the next call.")
    budget = BudgetSerializer(
        many=True,
        help_text="The most that all policies together pay in a day and a month (UTC). Empty: no budget.",
    )
    mayChangePolicies = serializers.BooleanField(
        help_text="Also signers of vouchers: you own the sponsor, and it has a budget."
    )
    dailyUse = serializers.IntegerField(help_text="Credits per day, averaged over the last 14 days.")
    daysLeft = serializers.IntegerField(
        allow_null=True,
        help_text="For how many whole days the credits last at this rate; null without a week of use.",
    )


class TargetSerializer(serializers.Serializer[Any]):
    """A contract that a policy pays for."""

    contract = serializers.CharField(help_text="An address; `profile` for what a profile does to itself.")
    functions = serializers.ListField(
        child=serializers.CharField(), help_text="Selectors; `0x` is a transfer of LYX. Empty: all functions."
    )


class TermsSerializer(serializers.Serializer[Any]):
    """A version of a policy; versions never change. Limits are in credits of the sponsor's part; null: no limit."""

    version = serializers.IntegerField(source="number")
    purpose = serializers.ChoiceField(choices=Purpose.choices, help_text="What the policy pays for.")
    chainId = serializers.IntegerField(
        source="chain_id", allow_null=True, help_text="Null for the home chain."
    )
    startsAt = serializers.DateTimeField(source="starts_at", allow_null=True)
    endsAt = serializers.DateTimeField(source="ends_at", allow_null=True)
    targets = TargetSerializer(many=True, help_text="Empty: every call.")
    profiles = serializers.ChoiceField(choices=ProfileRule.choices)
    listedProfiles = serializers.SerializerMethodField(help_text="How many profiles are listed.")
    newSince = serializers.DateTimeField(source="new_since", allow_null=True)
    counterpart = AddressField(
        allow_null=True, help_text="The token that profiles must hold, or the other profile of a follow."
    )
    leastBalance = serializers.CharField(
        source="least_balance", allow_null=True, help_text="The lowest token balance, in its smallest unit."
    )
    gasPriceCeilingWei = serializers.CharField(source="gas_price_ceiling_wei", allow_null=True)
    sharePercent = serializers.IntegerField(source="share_percent")
    callCredits = serializers.IntegerField(source="call_credits")
    userDayCredits = serializers.IntegerField(source="user_day_credits", allow_null=True)
    userCredits = serializers.IntegerField(source="user_credits", allow_null=True)
    userCalls = serializers.IntegerField(source="user_calls", allow_null=True)
    windowSeconds = serializers.IntegerField(source="window_seconds", allow_null=True)
    windowCredits = serializers.IntegerField(source="window_credits", allow_null=True)
    windowCalls = serializers.IntegerField(source="window_calls", allow_null=True)
    campaignCredits = serializers.IntegerField(source="campaign_credits", allow_null=True)
    campaignCalls = serializers.IntegerField(source="campaign_calls", allow_null=True)
    originCalls = serializers.IntegerField(source="origin_calls", allow_null=True)
    firstCredits = serializers.IntegerField(
        source="first_credits", allow_null=True, help_text="What each new profile gets."
    )
    firstDays = serializers.IntegerField(
        source="first_days", allow_null=True, help_text="After how many days first credits expire."
    )
    firstChainIds = serializers.ListField(
        source="first_chain_ids",
        child=serializers.IntegerField(),
        help_text="Chains besides home on which first credits may be spent.",
    )

    def get_listedProfiles(self, terms: Any) -> int:  # noqa: N802 (the name on the wire)
        return len(terms.listed)


class PolicyUseSerializer(serializers.Serializer[Any]):
    """Usage that counts towards the limits: credits charged, or held by calls in progress."""

    credits = serializers.IntegerField(help_text="In total.")
    calls = serializers.IntegerField(help_text="In total.")
    windowCredits = serializers.IntegerField(source="window_credits", help_text="In the current window.")
    windowEndsAt = serializers.DateTimeField(source="window_ends_at", allow_null=True)


class PolicySerializer(serializers.Serializer[Any]):
    """A policy. The service checks policies in this order; the first whose terms fit a call pays for it."""

    name = serializers.CharField()
    isEnabled = serializers.BooleanField(help_text="A policy that is switched off pays for no new call.")
    terms = TermsSerializer(
        allow_null=True, help_text="Null before the first version; the policy pays nothing."
    )
    use = PolicyUseSerializer()


class PoliciesSerializer(serializers.Serializer[Any]):
    policies = PolicySerializer(many=True)


class SpentOnDaySerializer(serializers.Serializer[Any]):
    day = serializers.DateField(source="what", help_text="The UTC day on which the calls were accepted.")
    credits = serializers.IntegerField()
    calls = serializers.IntegerField()


class SpentByPolicySerializer(serializers.Serializer[Any]):
    policy = serializers.CharField(source="what")
    credits = serializers.IntegerField()
    calls = serializers.IntegerField()


class SpentOnUserSerializer(serializers.Serializer[Any]):
    user = serializers.CharField(
        source="what",
        help_text="A permanent pseudonym. It reveals no profile, and other sponsors see a different one.",
    )
    credits = serializers.IntegerField()
    calls = serializers.IntegerField()


class SpendSerializer(serializers.Serializer[Any]):
    """Credits that the sponsor has paid, or that are held for calls in progress."""

    days = SpentOnDaySerializer(many=True, help_text="Days with calls, oldest first.")
    policies = SpentByPolicySerializer(many=True, help_text="Policies with calls, highest spend first.")
    users = SpentOnUserSerializer(many=True, help_text=f"The {MOST_USERS} users with the highest spend.")
    userCount = serializers.IntegerField(source="user_count", help_text="The number of all users with calls.")


class RefusedSerializer(serializers.Serializer[Any]):
    rule = serializers.CharField(help_text="The code of the problem.")
    requests = serializers.IntegerField()


class RefusalsSerializer(serializers.Serializer[Any]):
    refusals = RefusedSerializer(many=True, help_text="The most frequent first.")


DAYS = OpenApiParameter(
    "days",
    int,
    description=f"How many UTC days up to today, from 1 to {_MOST_DAYS}; {_USUAL_DAYS} without it.",
)


def days_in(request: Request) -> int:
    """
    Return the number of days that the query asks for.

    Raises:
        ValidationError: it is not a number, or out of range.
    """
    text = request.query_params.get("days", str(_USUAL_DAYS))
    if not (text.isdecimal() and len(text) < 4 and 1 <= int(text) <= _MOST_DAYS):
        raise serializers.ValidationError({"days": [f"Send a whole number from 1 to {_MOST_DAYS}."]})
    return int(text)


class FiguresViewSet(SponsorViewSet):
    @extend_schema(
        operation_id="sponsorOverview",
        tags=["sponsors"],
        summary="Get a sponsor's credits and how long they last",
        responses={200: OverviewSerializer, **_FAULTS},
    )
    @action(detail=False)
    def overview(self, request: Request, name: str) -> Response:
        sponsor = self.access.sponsor
        account = sponsor.credit_account
        with reading_from_replica():
            rate = burn_rate_of(sponsor, now=clock.now())
        body = {
            "name": sponsor.slug,
            "displayName": sponsor.name,
            "isFrozen": sponsor.is_frozen,
            "rights": sorted(self.access.rights),
            "balance": account.balance,
            "held": account.held,
            "available": account.available,
            "budget": budget_of(sponsor, now=clock.now()),
            "mayChangePolicies": sponsor.has_budget and Right.OWN in self.access.rights,
            "dailyUse": rate.daily_use,
            "daysLeft": rate.days_left,
        }
        return Response(rendered(OverviewSerializer, body), headers=PRIVATE)

    @extend_schema(
        operation_id="sponsorPolicies",
        tags=["sponsors"],
        summary="List a sponsor's policies with their usage",
        description="Terms are never edited: each change is a new version. Two members of the operator's staff add "
        "it, or an owner of a sponsor with a budget.",
        responses={200: PoliciesSerializer, **_FAULTS},
    )
    @action(detail=False)
    def policies(self, request: Request, name: str) -> Response:
        return Response(policies_body(self.access.sponsor), headers=PRIVATE)

    @extend_schema(
        operation_id="sponsorSpend",
        tags=["sponsors"],
        summary="Get a sponsor's spend by day, policy and user",
        parameters=[DAYS],
        responses={200: SpendSerializer, **_FAULTS},
    )
    @action(detail=False)
    def spend(self, request: Request, name: str) -> Response:
        since = since_of(days_in(request), now=clock.now())
        with reading_from_replica():
            spent = spend_of(self.access.sponsor, since=since)
        return Response(rendered(SpendSerializer, spent), headers=PRIVATE)

    @extend_schema(
        operation_id="sponsorRefusals",
        tags=["sponsors"],
        summary="Get how many requests each rule refused",
        description="Counts requests that named the sponsor and that no policy paid for, including those to `prepare`.",
        parameters=[DAYS],
        responses={200: RefusalsSerializer, **_FAULTS},
    )
    @action(detail=False)
    def refusals(self, request: Request, name: str) -> Response:
        since = since_of(days_in(request), now=clock.now())
        rows = refusals_of(self.access.sponsor, since=since)
        refusals = [{"rule": rule, "requests": number} for rule, number in rows]
        return Response(rendered(RefusalsSerializer, {"refusals": refusals}), headers=PRIVATE)


def policies_body(sponsor: Sponsor) -> dict[str, Any]:
    """Return the response with the sponsor's policies."""
    rows = [_policy(row) for row in policies_of(sponsor, now=clock.now())]
    return rendered(PoliciesSerializer, {"policies": rows})


def _policy(row: PolicyFigures) -> dict[str, Any]:
    return {"name": row.policy.name, "isEnabled": row.policy.is_enabled, "terms": row.terms, "use": row}
