"""Pages of long lists, whose rows are counted only as far as anybody turns pages."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

FAR_ENOUGH = 10_000


class BoundedPaginator(Paginator[Any]):
    """
    Counts up to `FAR_ENOUGH` rows and stops, so that a list of millions opens as fast as a short one.

    Rows beyond that are found by searching and filtering.
    """

    template_name = "admin/bounded_pages.html"

    @cached_property
    def count(self) -> int:
        """Return the number of rows, `FAR_ENOUGH` where there are more."""
        rows = self.object_list
        if not isinstance(rows, QuerySet):
            return min(len(rows), FAR_ENOUGH)
        return rows.order_by()[:FAR_ENOUGH].count()

    @property
    def is_cut(self) -> bool:
        """Return whether there may be more rows than the pages show."""
        return self.count >= FAR_ENOUGH
