"""Drop tables in the admin: written by one person, weighed by their odds, and never changed once published."""

from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse
from django.utils import timezone

from checkin.draw import odds_of
from checkin.models import DropItem, DropTable
from checkin.queries import items_of, most_attempts
from gateway.staff.audit import details_of
from rewards.models import BadgeTrack
from tests.checkin.admin.pages import act, form_of, page_of, percent, plain, shown
from tests.checkin.rows import everything, lowest
from tests.staff import browser_of, messages_of
from tests.threads import waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def page(name: str, table: DropTable) -> str:
    """Return the address of a page about a table."""
    return reverse(f"admin:checkin_droptable_{name}", args=[table.pk])


def put_past_the_rules(draft: DropTable) -> None:
    """Publish a draft without asking whether it may be."""
    DropTable.objects.filter(pk=draft.pk).update(published_at=timezone.now())


def test_only_roles_with_permission_change_a_draft(approver: User, draft: DropTable) -> None:
    row = draft.items.order_by("id")[0]
    before = everything()
    body = form_of([{"id": row.pk, "table": draft.pk, "weight": 999}], initial=1)
    assert browser_of(approver).post(page("change", draft), body).status_code == 403
    assert browser_of(approver).post(page("delete", draft), {"post": "yes"}).status_code == 403
    assert everything() == before


def test_the_author_changes_items_and_throws_drafts_away(author: User, draft: DropTable) -> None:
    body = shown(list(draft.items.order_by("id")), weight=77)
    assert browser_of(author).post(page("change", draft), body).status_code == 302
    assert set(draft.items.values_list("weight", flat=True)) == {77}

    assert browser_of(author).post(page("delete", draft), {"post": "yes"}).status_code == 302
    assert not DropTable.objects.filter(pk=draft.pk).exists()


def test_the_history_lists_each_added_changed_and_removed_item(author: User, draft: DropTable) -> None:
    rows = list(draft.items.order_by("id"))
    kept, gone, count = rows[0], rows[1], len(rows)
    body = shown(rows) | {
        "items-0-weight": kept.weight + 1,
        "items-1-DELETE": "on",
        "items-TOTAL_FORMS": count + 1,
    }
    new = {
        "table": draft.pk,
        "drop_type": "CREDITS",
        "weight": 5,
        "value_min": "1",
        "value_max": "2",
        "streak_days": 0,
    }
    body |= {f"items-{count}-{name}": value for name, value in new.items()}

    assert browser_of(author).post(page("change", draft), body).status_code == 302

    added = draft.items.latest("id")
    changes = details_of(LogEntry.objects.get(user=author))["changes"]
    assert changes[f"drop item {kept.pk}: weight"] == [str(kept.weight), str(kept.weight + 1)]
    assert changes[f"drop item {gone.pk}: drop_type"] == [gone.drop_type, ""]
    assert changes[f"drop item {gone.pk}: weight"] == [str(gone.weight), ""]
    assert changes[f"drop item {added.pk}: weight"] == ["", "5"]
    assert {name.split(":")[0] for name in changes} == {f"drop item {row.pk}" for row in (kept, gone, added)}


def test_the_form_tells_an_author_that_the_saved_table_was_published_in_between(
    author: User, draft: DropTable
) -> None:
    body = shown(list(draft.items.order_by("id")), weight=77)
    put_past_the_rules(draft)
    before = everything()

    response = browser_of(author).post(page("change", draft), body)

    assert response.status_code == 200
    assert "Copy it as a new draft" in str(response.context["errors"])
    assert 'value="77"' in response.content.decode()
    assert everything() == before
    assert not LogEntry.objects.filter(user=author).exists()


def test_a_message_tells_an_author_that_the_discarded_table_was_published_in_between(
    author: User, draft: DropTable
) -> None:
    put_past_the_rules(draft)
    before = everything()
    response = browser_of(author).post(page("delete", draft), {"post": "yes"}, follow=True)
    assert "Copy it as a new draft" in messages_of(response)
    assert everything() == before
    assert not LogEntry.objects.filter(user=author).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["change", "delete"])
def test_an_author_waits_for_a_concurrent_publication_and_sees_an_error(
    author: User, draft: DropTable, name: str
) -> None:
    rows = list(draft.items.order_by("id"))
    body = shown(rows, weight=77) if name == "change" else {"post": "yes"}
    client = browser_of(author)
    client.raise_request_exception = False
    send = partial(client.post, page(name, draft), body, follow=True)

    with waits_for_this_transaction(send) as sent:
        put_past_the_rules(draft)

    response: Any = sent.result()
    assert response.status_code == 200
    assert "Copy it as a new draft" in response.content.decode()
    assert list(draft.items.order_by("id").values_list("weight", flat=True)) == [row.weight for row in rows]


@pytest.mark.django_db(transaction=True)
def test_two_concurrent_saves_of_an_author_wait_for_each_other(author: User, draft: DropTable) -> None:
    client = browser_of(author)
    # What the second one sends is what was there before the first.
    draft.items.update(weight=8)
    rows = list(draft.items.order_by("id"))
    with waits_for_this_transaction(
        partial(client.post, page("change", draft), shown(rows, weight=8))
    ) as sent:
        browser_of(author).post(page("change", draft), shown(rows, weight=7))
    response: Any = sent.result()
    assert response.status_code == 302
    assert set(draft.items.values_list("weight", flat=True)) == {8}


@pytest.mark.parametrize(
    "row",
    [
        {"drop_type": "CREDITS", "weight": 0, "value_min": "1", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 1, "value_min": "3", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 1, "value_min": "1.5", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 1, "value_min": "1", "value_max": "2", "minutes": 5},
        {"drop_type": "EXPERIENCE", "weight": 1, "value_min": "0", "value_max": "2"},
        {"drop_type": "BONUS_CREDITS_BACK", "weight": 1, "value_min": "0.1", "value_max": "0.2"},
        {
            "drop_type": "BONUS_CREDITS_BACK",
            "weight": 1,
            "value_min": "0.1",
            "value_max": "1.1",
            "minutes": 5,
        },
        {
            "drop_type": "BONUS_CREDITS_BACK",
            "weight": 1,
            "value_min": "0.1",
            "value_max": "0.2",
            "minutes": 0,
        },
        {"drop_type": "LUCK", "weight": 1, "value_min": "1", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 1_000_001, "value_min": "1", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 2**31, "value_min": "1", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 1, "value_min": "NaN", "value_max": "2"},
        {"drop_type": "CREDITS", "weight": 1, "value_min": "1", "value_max": "1e12"},
        {
            "drop_type": "BONUS_CREDITS_BACK",
            "weight": 1,
            "value_min": "0.00001",
            "value_max": "0.2",
            "minutes": 5,
        },
        {
            "drop_type": "BONUS_CREDITS_BACK",
            "weight": 1,
            "value_min": "0.1",
            "value_max": "0.2",
            "minutes": 43_201,
        },
    ],
)
def test_an_invalid_item_is_refused(author: User, row: dict[str, Any]) -> None:
    before = everything()
    body = form_of([row], badge=lowest(BadgeTrack.PERMANENT).pk)
    response = browser_of(author).post(reverse("admin:checkin_droptable_add"), body)
    assert response.status_code == 200
    assert response.context["errors"]
    assert everything() == before


def test_a_published_table_is_shown_and_not_changed(author: User) -> None:
    table = DropTable.objects.order_by("id")[0]
    before = everything()
    assert 'name="_save"' not in page_of(browser_of(author), "droptable", table.pk)
    for name in ("change", "delete"):
        assert browser_of(author).post(page(name, table), {"post": "yes"}).status_code == 403
    assert everything() == before


def test_the_form_reports_an_item_that_another_window_deleted(author: User, draft: DropTable) -> None:
    rows = list(draft.items.order_by("id"))
    DropItem.objects.filter(pk=rows[0].pk).delete()
    before = everything()
    response = browser_of(author).post(page("change", draft), shown(rows, weight=77))
    assert response.status_code == 200
    assert response.context["errors"]
    assert everything() == before


def test_a_published_table_is_copied_to_change_it(approver: User) -> None:
    table = DropTable.objects.order_by("id")[0]
    act(browser_of(approver), "copy_as_draft", table)
    copy = DropTable.objects.get(badge=table.badge, version=table.version + 1)
    assert (copy.author, copy.published_at, copy.items.count()) == (approver, None, table.items.count())


def test_the_page_shows_odds_expected_values_and_faults(author: User, draft: DropTable) -> None:
    table = DropTable.objects.select_related("badge").order_by("id")[0]
    text = page_of(browser_of(author), "droptable", table.pk)
    assert table.badge
    for odds in odds_of(items_of([table])):
        day = odds.over(most_attempts(table.badge))
        for figure in (
            percent(odds.probability),
            plain(odds.expected),
            plain(odds.variance),
            plain(day.expected),
        ):
            assert f">{figure}<" in text
        assert f"{day.most.normalize():f}" in text
    DropItem.objects.filter(table=draft, drop_type="EXPERIENCE").delete()
    assert "It needs an item of experience" in page_of(browser_of(author), "droptable", draft.pk)


def test_the_rarest_item_and_a_table_of_no_badge_are_shown(author: User, draft: DropTable) -> None:
    draft.items.update(weight=1)
    draft.items.filter(drop_type="EXPERIENCE").update(weight=1_000_000)
    assert ">0.0001%<" in page_of(browser_of(author), "droptable", draft.pk)
    DropTable.objects.filter(pk=draft.pk).update(badge=None)
    text = page_of(browser_of(author), "droptable", draft.pk)
    assert "A user has at most 0 attempts a day." in text
    assert "It has no badge." in text
    draft.items.all().delete()
    assert "No items are saved." in page_of(browser_of(author), "droptable", draft.pk)
