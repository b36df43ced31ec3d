"""Template filters for the rows of a list: Django's own, without the theme's classes on each cell."""

from typing import Any

from django import template
from django.contrib.admin.templatetags import admin_list
from django.contrib.admin.views.main import ChangeList

register = template.Library()


@register.filter
def list_rows(changes: ChangeList) -> list[Any]:
    """Return the rows of the shown page, each a list of cells."""
    return list(admin_list.results(changes))


@register.filter
def list_heads(changes: ChangeList) -> list[dict[str, Any]]:
    """Return the heads of the columns with the addresses that sort by them."""
    return list(admin_list.result_headers(changes))
