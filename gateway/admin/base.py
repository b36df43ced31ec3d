"""
The base classes of every admin page.

Apps use these classes instead of the theme's: they are typed, log every change, and count at most `FAR_ENOUGH` rows.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import admin
from django.contrib.admin import helpers
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import DataError, models
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline

from gateway.admin import columns
from gateway.admin.mixins import Audited
from gateway.common.fields import ClockField


def one_of(
    field: str, values: Callable[[], Iterable[str]], *, word: Callable[[str], str] = str
) -> type[admin.SimpleListFilter]:
    """
    Return a filter for the column `field` with these values; Django's own filter would scan the table for them.

    `word` returns what staff read of a value.
    """

    class OneOf(admin.SimpleListFilter):
        title = field.replace("_", " ")
        parameter_name = field

        def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
            return [(value, word(value)) for value in values()]

        def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
            return queryset.filter(**{field: self.value()}) if self.value() else queryset

    return OneOf


class Days(admin.FieldListFilter):
    """A filter of a time by its first and last day in UTC; staff may leave either open."""

    template = "admin/days.html"

    def expected_parameters(self) -> list[str | None]:
        return [f"{self.field_path}__from_day", f"{self.field_path}__to_day"]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        first, last = map(self._day, self.expected_parameters())
        if first:
            queryset = queryset.filter(**{f"{self.field_path}__gte": self._bound(first)})
        if last:
            queryset = queryset.filter(**{f"{self.field_path}__lt": self._bound(last + timedelta(days=1))})
        return queryset

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        own = self.expected_parameters()
        others = [(name, value) for name, value in changelist.get_filters_params().items() if name not in own]
        inputs = [(label, name, self._text(name)) for label, name in zip(("From", "To"), own, strict=True)]
        kept = [("q", changelist.query)] if changelist.query else []
        yield {"inputs": inputs, "others": kept + [(name, text) for name, texts in others for text in texts]}

    def _text(self, name: str | None) -> str:
        given: Any = self.used_parameters.get(name or "", "")
        return str(given[-1] if isinstance(given, list) else given)

    def _day(self, name: str | None) -> date | None:
        text = self._text(name)
        if not text:
            return None
        try:
            return date.fromisoformat(text)
        except ValueError as error:
            raise IncorrectLookupParameters from error

    def _bound(self, day: date) -> date | datetime:
        is_time = isinstance(self.field, models.DateTimeField)
        return datetime.combine(day, time(), UTC) if is_time else day


FAR_ENOUGH = 10_000


class BoundedPaginator(Paginator[Any]):
    """
    Counts at most `FAR_ENOUGH` rows, so that a list of millions opens as fast as a short one.

    Staff find further rows by search and filters.
    """

    template_name = "admin/bounded_pages.html"

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return min(len(rows), FAR_ENOUGH)
        return rows.order_by()[:FAR_ENOUGH].count()

    @property
    def is_cut(self) -> bool:
        return self.count >= FAR_ENOUGH


_Row = TypeVar("_Row", bound=models.Model)
_Parent = TypeVar("_Parent", bound=models.Model)

if TYPE_CHECKING:

    class _Admin(admin.ModelAdmin[_Row]):
        """The theme's class, with types."""

    class _Inline(admin.TabularInline[_Row, _Parent]):
        """The theme's class, with types."""
else:
    _Admin, _Inline = ModelAdmin, TabularInline


def _own_names(page: "StaffAdmin[Any]") -> list[str]:
    """Return the columns of a list that are fields of its rows."""
    own = {field.name for field in page.opts.concrete_fields}
    return [name for name in page.list_display if isinstance(name, str) and name in own]


def _is_time_of_creation(field: models.Field[Any, Any]) -> bool:
    """Return whether a column has the time at which its row is stored, by the clock or the database."""
    return isinstance(field, ClockField) or isinstance(field.db_default, Now)


class StaffAdmin(Audited, _Admin[_Row]):
    """Rows that staff can edit; every change is logged."""

    show_full_result_count = False
    list_per_page = 50
    list_filter_sheet = False
    paginator = BoundedPaginator
    # Long columns that only a row's page loads, not the list.
    list_defer: ClassVar[tuple[str, ...]] = ()
    # Columns with fractions of a bonus: 0.15 is shown as +15 %.
    percents: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def _columns(self) -> dict[str, Any]:
        return {}

    def _column(self, name: Any) -> Any:
        # Cached, because Django compares the columns by identity with those that are links.
        if name not in self._columns:
            self._columns[name] = columns.shown(self.model, name, in_list=True, percents=self.percents)
        return self._columns[name]

    def get_list_display(self, request: HttpRequest) -> Any:
        return [self._column(name) for name in super().get_list_display(request)]

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        links = super().get_list_display_links(request, list_display)
        return links and [self._column(name) for name in links]

    def get_list_filter(self, request: HttpRequest) -> Any:
        """Add a filter by days for the first time column of the list."""
        named = list(super().get_list_filter(request))
        taken = {entry[0] for entry in named if isinstance(entry, tuple)}
        fields = [self.opts.get_field(name) for name in _own_names(self)]
        day = next((field.name for field in fields if isinstance(field, models.DateField)), None)
        return named if day is None or day in taken else [*named, (day, Days)]

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        try:
            changes = super().get_changelist_instance(request)
        except (DataError, TypeError, ValueError) as error:
            if not request.GET:
                raise
            # The address compares a column with what it cannot have, such as text with a NUL.
            raise IncorrectLookupParameters from error
        changes.result_list = self.shown_rows(changes.result_list)
        return changes

    def shown_rows(self, rows: QuerySet[_Row]) -> QuerySet[_Row]:
        """Return the rows of one page of the list with what its columns need. The rows are counted without it."""
        return rows.defer(*self.list_defer)

    # Django's names the row by its text, which may cost a query each.
    def action_checkbox(self, obj: Any) -> SafeString:
        return format_html(
            '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="Select row {}">',
            helpers.ACTION_CHECKBOX_NAME,
            obj.pk,
            obj.pk,
        )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields of a row's page; for a new row, only those that staff fill in."""
        fields = super().get_fields(request, obj)
        if obj is not None:
            return fields
        not_asked = {field.name for field in self.opts.concrete_fields if _is_time_of_creation(field)}
        return [name for name in fields if name not in not_asked.union(self.get_readonly_fields(request))]

    def find_rows(self, rows: QuerySet[_Row], term: str) -> QuerySet[_Row] | None:
        """Return the rows that match the term, or None to use `search_fields`."""
        return None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[_Row], search_term: str
    ) -> tuple[QuerySet[_Row], bool]:
        term = search_term.strip()
        rows = self.find_rows(queryset, term) if term else None
        return super().get_search_results(request, queryset, term) if rows is None else (rows, False)


class StaffInline(_Inline[_Row, _Parent]):
    extra = 0


class _ReadOnly:
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(_ReadOnly, StaffAdmin[Any]):
    """Read-only rows; adding, changing and deleting are refused, even by URL."""

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        return [
            (title, {**options, "fields": [self._field(name) for name in options["fields"]]})
            for title, options in fieldsets
        ]

    def _field(self, name: Any) -> Any:
        return columns.shown(self.model, name, in_list=False, percents=self.percents)


class AppendOnlyAdmin(ReadOnlyAdmin):
    """Rows that staff with the model's `add` permission can add, but not change or delete."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(ModelAdmin.has_add_permission(self, request))


class OwnedRows(ReadOnlyAdmin):
    """Rows that belong to a user; `owner_path` is the relation from a row to its user."""

    owner_path: ClassVar[str]

    @admin.display(description="profile")
    def profile(self, row: Any) -> SafeString | str:
        """Return a link to the owner, shown by profile address, or by id if there is none; a dash without an owner."""
        owner = reduce(getattr, self.owner_path.split("__"), row)
        if owner is None:
            return "—"
        page = reverse("admin:users_user_change", args=[owner.pk])
        return format_html('<a href="{}">{}</a>', page, columns.short(str(owner.profile_address or owner.pk)))


class ReadOnlyInline(_ReadOnly, StaffInline[_Row, _Parent]):
    """Read-only rows below their parent."""

    can_delete = False

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self._shown(super().get_fields(request, obj))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self._shown(super().get_readonly_fields(request, obj))

    def _shown(self, names: Any) -> list[Any]:
        return [
            self._by_name.setdefault(name, columns.shown(self.model, name, in_list=True)) for name in names
        ]

    @cached_property
    def _by_name(self) -> dict[Any, Any]:
        return {}
