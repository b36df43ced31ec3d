"""List filters whose choices are known in advance, so that finding them reads no whole table."""

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest


def one_of(field: str, values: Callable[[], Iterable[str]]) -> type[admin.SimpleListFilter]:
    """Return a filter of the text column `field` that offers `values`, computed for each request."""

    class OneOf(admin.SimpleListFilter):
        title = field.replace("_", " ")
        parameter_name = field

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
            return [(value, value) for value in values()]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{field: self.value()}) if self.value() else queryset

    return OneOf
