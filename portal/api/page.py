"""Endpoints for the account page only: its first screen, the timeline, and support's notes."""

import json
from typing import Any
from urllib.parse import urlencode

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from checkin.api.serializers import DropSerializer, as_number
from checkin.draw import Item
from checkin.models import DropType
from credits.models import EntrySource
from credits.rules import LOW_DAYS, USE_PERIOD, Level
from credits.services.expiry import NOTICE
from earnings.networks import ADAPTERS
from gateway.common.clock import now
from gateway.common.db import reading_from_replica
from gateway.common.http import PRIVATE
from gateway.web.serializers import AddressField, HashField, rendered
from gateway.web.throttling import user_rate
from portal.api import schema
from portal.dashboard import Home, home_of
from portal.histories import KINDS, Happening, Position, timeline_of
from relay.models import HASH_PART, RelayTransaction
from relay.payloads import MOST_ACTIONS, actions_of
from users.api.authentication import ProfileRequest

_FEWEST, _USUAL, _MOST = 1, 25, 100


class SpentSerializer(serializers.Serializer[Any]):
    day = serializers.DateField(help_text="UTC.")
    credits = serializers.IntegerField()


class CalendarDaySerializer(serializers.Serializer[Any]):
    day = serializers.DateField(help_text="UTC.")
    checkIns = serializers.IntegerField(help_text="How many the user made that day.")


class _DropSerializer(serializers.Serializer[Any]):
    type = serializers.ChoiceField(choices=DropType.choices)
    least = serializers.FloatField(help_text="Whole experience or credits; a fraction for a bonus.")
    most = serializers.FloatField()
    effectiveTimeInMinutes = serializers.IntegerField(
        allow_null=True, help_text="How long a bonus lasts; null for experience and credits."
    )


class ChanceSerializer(_DropSerializer):
    """A drop that the next check-in can give."""

    probability = serializers.FloatField(help_text="From 0 to 1; those of all drops add up to 1.")


class NextDropSerializer(_DropSerializer):
    """A drop that becomes possible with a longer streak."""

    inDays = serializers.IntegerField(help_text="Check-ins on so many more days in a row, today's included.")


class CalendarSerializer(serializers.Serializer[Any]):
    """The user's check-ins as a habit."""

    canCheckIn = serializers.BooleanField()
    attemptsLeft = serializers.IntegerField(help_text="Today (UTC).")
    nextCheckInAt = serializers.DateTimeField(allow_null=True, help_text="Null while an attempt is left.")
    streak = serializers.IntegerField(help_text="Days in a row with a check-in, up to today or yesterday.")
    days = CalendarDaySerializer(many=True, help_text="The last seven, oldest first.")
    chances = ChanceSerializer(many=True)
    nextDrop = NextDropSerializer(
        allow_null=True, help_text="What the streak unlocks next; null if the drop tables have nothing more."
    )


class ExpiringSerializer(serializers.Serializer[Any]):
    """Given credits that expire unless they are used; bought ones never do."""

    credits = serializers.IntegerField(help_text="The credits that remain.")
    entrySource = serializers.ChoiceField(source="source", choices=EntrySource.choices)
    expiresAt = serializers.DateTimeField(source="expires_at")


class FirstStepsSerializer(serializers.Serializer[Any]):
    """What a newcomer has done already."""

    hadCredits = serializers.BooleanField(source="had_credits", help_text="Whether credits were ever added.")
    relayedCall = serializers.BooleanField(source="relayed_call", help_text="Whether a call was accepted.")


class HomeSerializer(serializers.Serializer[Any]):
    """The rest of the first screen, without the account."""

    creditLevel = serializers.ChoiceField(
        source="level",
        choices=[level.value for level in Level],
        help_text=f"`low`: the available credits last for less than {LOW_DAYS} days of the user's own use.",
    )
    dailyUse = serializers.IntegerField(
        source="daily_use", help_text=f"Credits charged per day of the last {USE_PERIOD.days} days."
    )
    daysLeft = serializers.IntegerField(
        source="days_left", allow_null=True, help_text="Whole days that the credits last; null without use."
    )
    expiring = ExpiringSerializer(
        many=True, help_text=f"Credits that expire within {NOTICE.days} days, soonest first."
    )
    typicalCost = serializers.IntegerField(
        allow_null=True,
        help_text="The median cost of the newest calls of all users, in credits; null before there are any.",
    )
    spending = SpentSerializer(
        many=True, help_text="The last 30 UTC days on which calls of the user were settled."
    )
    checkIn = CalendarSerializer()
    firstSteps = FirstStepsSerializer(source="steps")


def _dropping(item: Item) -> dict[str, Any]:
    return {
        "type": item.drop_type,
        "least": as_number(item.least),
        "most": as_number(item.most),
        "effectiveTimeInMinutes": item.minutes,
    }


def _home(home: Home) -> dict[str, Any]:
    calendar = home.calendar
    return {
        **{name: getattr(home, name) for name in ("level", "daily_use", "days_left", "expiring", "steps")},
        "typicalCost": home.spending.typical_cost,
        "spending": [{"day": day, "credits": spent} for day, spent in home.spending.days],
        "checkIn": {
            "canCheckIn": calendar.can_check_in,
            "attemptsLeft": calendar.attempts_left,
            "nextCheckInAt": calendar.next_at,
            "streak": calendar.streak,
            "days": [{"day": day, "checkIns": number} for day, number in calendar.days],
            "chances": [
                {**_dropping(chance.item), "probability": chance.probability} for chance in calendar.chances
            ],
            "nextDrop": calendar.next_drop
            and {**_dropping(calendar.next_drop.item), "inDays": calendar.next_drop.in_days},
        },
    }


class ActionSerializer(serializers.Serializer[Any]):
    """One thing that a relay call does."""

    action = serializers.ChoiceField(
        choices=["send", "call", "write", "deploy", "manage", "create"],
        help_text="`send`: money to `to`; `call`: `method` of the contract `to`; `write`: data of the profile; "
        "`deploy`: a new contract; `manage`: `method` of the profile itself; `create`: the profile was created.",
    )
    to = AddressField(allow_null=True)
    valueWei = serializers.CharField(source="value_wei")
    method = serializers.CharField(help_text="The name of a well-known method; otherwise empty.")
    recipient = AddressField(allow_null=True, help_text="The receiver that the method names.")


class HappeningSerializer(serializers.Serializer[Any]):
    """A relay call, a check-in, or another change of the balance."""

    kind = serializers.ChoiceField(choices=["call", "entry", "check-in"])
    at = serializers.DateTimeField()
    credits = serializers.IntegerField(help_text="The change; of a call in progress the expected one.")
    balanceAfter = serializers.IntegerField(
        source="balance_after", allow_null=True, help_text="Null if the balance did not change."
    )
    entrySource = serializers.ChoiceField(source="source", choices=EntrySource.choices)
    network = serializers.CharField(help_text="The name of the ad network of an earning; otherwise empty.")
    amountMinor = serializers.IntegerField(
        source="amount_minor",
        allow_null=True,
        help_text="Money paid, tax included; null for all but payouts.",
    )
    currency = serializers.CharField()
    status = serializers.ChoiceField(
        choices=[("", ""), *RelayTransaction.Status.choices], help_text="Of a call; otherwise empty."
    )
    failureCode = serializers.CharField(
        source="failure_code", help_text="Why a call failed, such as `reverted`; otherwise empty."
    )
    transactionHash = HashField(source="transaction_hash", allow_null=True)
    cashback = serializers.IntegerField(help_text="Credits that a call gave back; `credits` includes them.")
    sponsor = serializers.CharField(
        help_text="The name of the sponsor that pays a call or a part of it; otherwise empty."
    )
    actions = ActionSerializer(many=True, help_text=f"What a call does; the first {MOST_ACTIONS} of a batch.")
    hasMoreActions = serializers.BooleanField()
    drop = DropSerializer(allow_null=True, help_text="What a check-in gave.")


class TimelineSerializer(serializers.Serializer[Any]):
    next = serializers.URLField(
        allow_null=True, help_text="URL of the page of older rows; null on the last page."
    )
    results = HappeningSerializer(many=True)


def _happening(row: Happening) -> dict[str, Any]:
    actions = actions_of(row.payload)
    return {
        **{
            name: getattr(row, name)
            for name in ("kind", "at", "credits", "balance_after", "source", "currency")
        },
        **{
            name: getattr(row, name)
            for name in ("amount_minor", "status", "failure_code", "cashback", "sponsor")
        },
        "network": _network_of(row.cause),
        "transaction_hash": row.transaction_hash or None,
        "actions": actions[:MOST_ACTIONS],
        "hasMoreActions": len(actions) > MOST_ACTIONS,
        "drop": _drop(row.drop),
    }


def _network_of(cause: str) -> str:
    """Return the title of the network in the key of an earning's entry."""
    kind, _, rest = cause.partition(":")
    adapter = ADAPTERS.get(rest.partition(":")[0]) if kind in {"earning", "reversed-earning"} else None
    return adapter.title if adapter else ""


def _drop(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    stored = json.loads(text)
    drop = {"type": stored["type"], "value": float(stored["value"])}
    return drop if stored["minutes"] is None else {**drop, "effectiveTimeInMinutes": stored["minutes"]}


class NoteSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    writtenAt = serializers.DateTimeField(source="created_at")


class NotesSerializer(serializers.Serializer[Any]):
    """What staff wrote about the account, newest first."""

    notes = NoteSerializer(many=True)


class PageViewSet(ViewSet):
    """Reads of the account holder's page."""

    throttle_classes = (user_rate("DASHBOARD_RATE"),)

    @extend_schema(
        operation_id="home",
        tags=["user"],
        summary="Get the figures of the account page's first screen",
        description=schema.HOME_DESCRIPTION,
        responses={200: HomeSerializer, **schema.DASHBOARD},
    )
    @action(detail=False)
    def home(self, request: ProfileRequest) -> Response:
        body = rendered(HomeSerializer, _home(home_of(user=request.user, now=now())))
        return Response(body, headers=PRIVATE)

    @extend_schema(
        operation_id="timeline",
        tags=["user"],
        summary="List calls, earnings, payouts and check-ins by time",
        description=schema.TIMELINE_DESCRIPTION,
        parameters=[
            OpenApiParameter(
                "limit", {"type": "integer", "minimum": _FEWEST, "maximum": _MOST, "default": _USUAL}
            ),
            OpenApiParameter("cursor", OpenApiTypes.STR, description="Opaque position, taken from `next`."),
            OpenApiParameter("kind", enum=KINDS, description="List only rows of this kind."),
            OpenApiParameter(
                "hash",
                {"type": "string", "pattern": "^0x[0-9a-fA-F]{6,64}((…|\\.{2,3})[0-9a-fA-F]+)?$"},
                description="List only the calls with this transaction hash: the whole one, its beginning from 0x and "
                "six digits on, or a shortened one such as 0x12ab34…5678.",
            ),
        ],
        responses={200: TimelineSerializer, **schema.HISTORY},
    )
    @action(detail=False)
    def timeline(self, request: ProfileRequest) -> Response:
        limit, before = _limit(request), _position(request)
        kept = {
            name: value for name, value in (("kind", _kind(request)), ("hash", _hash_part(request))) if value
        }
        kinds = (kept["kind"],) if "kind" in kept else KINDS
        with reading_from_replica():
            page = timeline_of(
                user=request.user, before=before, limit=limit, kinds=kinds, hash_part=kept.get("hash", "")
            )
        query = page.next and urlencode({"limit": limit, "cursor": page.next.text, **kept})
        body = {
            "next": query and request.build_absolute_uri(f"{request.path}?{query}"),
            "results": [_happening(row) for row in page.rows],
        }
        return Response(rendered(TimelineSerializer, body), headers=PRIVATE)

    @extend_schema(
        operation_id="staffNotes",
        tags=["user"],
        summary="List what staff wrote about the account",
        description=schema.NOTES_DESCRIPTION,
        responses={200: NotesSerializer, **schema.DASHBOARD},
    )
    @action(detail=False, url_path="staffNotes")
    def notes(self, request: ProfileRequest) -> Response:
        return Response(rendered(NotesSerializer, {"notes": request.user.notes.all()}), headers=PRIVATE)


def _limit(request: ProfileRequest) -> int:
    text = request.query_params.get("limit", str(_USUAL))
    if not (text.isascii() and text.isdecimal() and len(text) <= 3 and _FEWEST <= int(text) <= _MOST):
        raise ValidationError({"limit": [f"Send a whole number from {_FEWEST} to {_MOST}."]})
    return int(text)


def _kind(request: ProfileRequest) -> str:
    kind = request.query_params.get("kind", "")
    if kind and kind not in KINDS:
        raise ValidationError({"kind": [f"Send one of {', '.join(KINDS)}."]})
    return kind


def _hash_part(request: ProfileRequest) -> str:
    part = request.query_params.get("hash", "")
    if part and HASH_PART.fullmatch(part) is None:
        raise ValidationError({"hash": ["Send 0x and at least six digits of a transaction hash."]})
    return part


def _position(request: ProfileRequest) -> Position:
    text = request.query_params.get("cursor")
    position = Position() if text is None else Position.of(text)
    if position is None:
        raise ValidationError({"cursor": ["Follow `next`."]})
    return position
