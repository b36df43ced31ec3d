"""Pages of the check-in in the admin, and what a browser sends to them."""

import re
from fractions import Fraction
from typing import Any

from django.test import Client
from django.urls import reverse

from checkin.models import DropItem, DropTable
from tests.staff import address_of, confirm


def page_of(client: Client, model: str, pk: int) -> str:
    """Return the text of a row's page."""
    response = client.get(reverse(f"admin:checkin_{model}_change", args=[pk]))
    assert response.status_code == 200
    return response.content.decode()


def act(client: Client, action: str, *tables: DropTable) -> str:
    """Choose an action for some tables and return the list as it is then."""
    body = {"action": action, "_selected_action": [table.pk for table in tables]}
    return client.post(reverse("admin:checkin_droptable_changelist"), body, follow=True).content.decode()


def review(client: Client, *tables: DropTable) -> tuple[str, dict[str, str]]:
    """Open the page on which publishing is confirmed; return its text and what its form carries unseen."""
    page = client.get(address_of("checkin_droptable", "publish", *tables)).content.decode()
    return page, dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))


def publish(client: Client, *tables: DropTable) -> str:
    """Review tables, confirm that they are published, and return the page that follows."""
    _, unseen = review(client, *tables)
    return confirm(client, "checkin_droptable", "publish", *tables, **unseen).content.decode()


def form_of(rows: list[dict[str, Any]], *, initial: int = 0, **others: Any) -> dict[str, Any]:
    """Return what the browser sends for a table with these items."""
    body: dict[str, Any] = {"items-TOTAL_FORMS": len(rows), "items-INITIAL_FORMS": initial, **others}
    for place, row in enumerate(rows):
        sent = {"streak_days": 0, **row}
        body |= {f"items-{place}-{name}": value for name, value in sent.items()}
    return body


def shown(items: list[DropItem], **changes: Any) -> dict[str, Any]:
    """Return what the browser of an author sends who changes these saved items."""
    names = ("id", "drop_type", "weight", "value_min", "value_max", "minutes")
    rows = [{name: getattr(row, name) or "" for name in names} | changes for row in items]
    return form_of(
        [{"table": row.table_id, **sent} for row, sent in zip(items, rows, strict=True)], initial=len(rows)
    )


def plain(value: Fraction, places: int = 6) -> str:
    """Return a figure as the pages show it."""
    return f"{float(value):.{places}f}".rstrip("0").rstrip(".")


def percent(chance: Fraction) -> str:
    """Return a probability as the pages show it."""
    return f"{plain(chance * 100, 5)}%"
