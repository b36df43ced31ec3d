"""
A row of any table, with parents of its own, so that a list that asks per row is found out.

Rows are written past the services: lists do not care how a row came about.
"""

import random
import secrets
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import count
from typing import Any

from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models import NOT_PROVIDED
from django.utils import timezone

from gateway.common.fields import AddressField, HashField, Uint256Field
from tests.factories import UserFactory, random_address

_numbers = count(1)
Values = dict[str, Any]
# What the constraints of a table demand, and relations that may be empty and are shown.
_CHOSEN: dict[str, Callable[[], Values]] = {
    "credits.CreditEntry": lambda: {"amount": 5, "balance_before": 2, "balance_after": 7},
    "gateway_admin.ApprovalRequest": lambda: {
        "kind": "adjust_credits",
        "changes": {"credits": ["", "+5"]},
        "requested_roles": ["support"],
        "content_type": ContentType.objects.get_for_model(_model("users.User")),
        "object_id": "1",
        "expires_at": timezone.now() + timedelta(days=1),
    },
    "earnings.Postback": lambda: {"user": UserFactory.create()},
    "payments.Payout": lambda: {
        "subscription": make(_model("payments.Subscription")),
        "period_start": timezone.now(),
        "period_end": timezone.now() + timedelta(days=30),
    },
    "payments.Clawback": lambda: {"credits": 0},
    "accounting.Month": lambda: {"begins_on": date(1900 + next(_numbers), 1, 1)},
    "accounting.CoinRate": lambda: {"day": date(1900, 1, 1) + timedelta(days=next(_numbers)), "price": 1},
    "checkin.DropTable": lambda: {
        "badge": make(_model("rewards.Badge")),
        "author": UserFactory.create(),
        # Every badge has had tables before.
        "version": 100 + next(_numbers),
    },
    "checkin.CheckIn": lambda: {
        "possible_results": [{"type": "CREDITS", "value": "5", "minutes": 0}],
        "result_place": 0,
    },
    "users.TrustedImplementation": lambda: {"address": random_address()},
    "webhooks.Endpoint": lambda: {"origins": ["https://wallet.example"], "event_types": ["call.settled"]},
    "gateway_admin.StaffAction": lambda: {
        "content_type": ContentType.objects.get_for_model(_model("users.User"))
    },
}


def make(model: type[models.Model]) -> Any:
    """Store a row of the table and return it."""
    if model._meta.label == "users.User":
        return UserFactory.create()
    if model._meta.label == "rewards.Badge":  # a track has no room for a badge between its own
        return random.choice(model._default_manager.all())
    values = _CHOSEN.get(model._meta.label, dict)()
    for field in model._meta.concrete_fields:
        if field.name not in values and _is_wanted(field):
            values[field.name] = _value(field)
    return model._default_manager.create(**values)


def _is_wanted(field: Any) -> bool:
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
    (models.DateTimeField, lambda _: timezone.now() + timedelta(seconds=next(_numbers))),
    (models.DateField, lambda _: date(2020, 1, 1) + timedelta(days=next(_numbers))),
]


def _model(label: str) -> type[models.Model]:
    return apps.get_model(label)
