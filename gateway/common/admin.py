"""
The base of every admin page.

Apps take their base classes from here and never from the theme: these are typed, and
their lists count at most `pages.FAR_ENOUGH` rows.
"""

from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db import models
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline

from gateway.common.audited import Audited
from gateway.common.pages import BoundedPaginator

_Row = TypeVar("_Row", bound=models.Model)
_Parent = TypeVar("_Parent", bound=models.Model)

if TYPE_CHECKING:

    class _Admin(admin.ModelAdmin[_Row]):
        """The theme's class, which carries no types."""

    class _Inline(admin.TabularInline[_Row, _Parent]):
        """The theme's class, which carries no types."""
else:
    _Admin, _Inline = ModelAdmin, TabularInline


class StaffAdmin(Audited, _Admin[_Row]):
    """Rows that staff edit, each change logged; permissions and services decide what may be edited."""

    show_full_result_count = False
    list_per_page = 50
    list_filter_sheet = False
    paginator = BoundedPaginator
    # Long columns that lists do not show and so do not read; a row's own page reads them.
    list_defer: ClassVar[tuple[str, ...]] = ()

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        found = super().get_changelist_instance(request)
        found.result_list = found.result_list.defer(*self.list_defer)
        return found


class StaffInline(_Inline[_Row, _Parent]):
    """Rows below their parent."""

    extra = 0


class ReadOnlyAdmin(StaffAdmin[Any]):
    """Lists and shows rows; adding, changing and deleting are refused, also by URL."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class OwnedRows(ReadOnlyAdmin):
    """Rows of one user each; `owner_path` leads from a row to its user."""

    owner_path: ClassVar[str]

    @admin.display(description="profile")
    def profile(self, row: Any) -> str:
        """Return the address of the owner's profile; of somebody without one, the id."""
        owner = reduce(getattr, self.owner_path.split("__"), row)
        return str(owner.profile_address or owner.pk)


class ReadOnlyInline(StaffInline[_Row, _Parent]):
    """Rows below their parent that nobody adds, changes or deletes."""

    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
