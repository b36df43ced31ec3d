"""Links to the lists of the admin: all in groups, and the chosen ones of a sidebar. Each app registers its lists."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse

# Group → labels of models with their icons, in display order.
_groups: dict[str, dict[str, str]] = {}
# Lists that no app has registered are shown last, with this icon.
_OTHERS, _OTHERS_ICON = "System", "database"


def register(group: str, icons: dict[str, str]) -> None:
    """Append the lists of these models to a group; `icons` maps labels to icons."""
    _groups.setdefault(group, {}).update(icons)


# Label of a model → function that counts the rows that wait for the user; 0 shows no badge.
_badges: dict[str, Callable[[HttpRequest], int]] = {}


def show_badge(label: str, count: Callable[[HttpRequest], int]) -> None:
    """Show a badge beside the list's link with the number of rows that wait for the user."""
    _badges[label] = count


def groups(request: HttpRequest, *, order: Sequence[str]) -> list[dict[str, Any]]:
    """Return the groups that `request.user` may see, with links to their lists."""
    links = {
        model._meta.label: _link(model)
        for model, model_admin in admin.site._registry.items()
        if model_admin.has_view_permission(request)
    }
    titles = [*order, *(title for title in _groups if title not in order)]
    items = {
        title: [
            {**links.pop(label), "icon": icon}
            for label, icon in _groups.get(title, {}).items()
            if label in links
        ]
        for title in titles
    }
    items.setdefault(_OTHERS, []).extend({**link, "icon": _OTHERS_ICON} for link in links.values())
    return [{"title": title, "items": shown} for title, shown in items.items() if shown]


def chosen(request: HttpRequest, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return links with icons and badges to the lists of these models that `request.user` may see, in this order."""
    by_label = {model._meta.label: (model, page) for model, page in admin.site._registry.items()}
    icons = {label: icon for group in _groups.values() for label, icon in group.items()}
    return [
        {**_link(model), **_badge(model, request), "icon": icons.get(label, _OTHERS_ICON)}
        for label in labels
        for model, page in [by_label[label]]
        if page.has_view_permission(request)
    ]


@cache
def _link(model: type[Model]) -> dict[str, Any]:
    meta = model._meta
    title = str(meta.verbose_name_plural)
    return {
        "title": title[:1].upper() + title[1:],
        "link": reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"),
    }


def _badge(model: type[Model], request: HttpRequest) -> dict[str, int]:
    count = _badges.get(model._meta.label)
    waiting = count(request) if count else 0
    return {"badge": waiting} if waiting else {}
