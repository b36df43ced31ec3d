"""A draft is published by a second person, as that person saw it."""

from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import reverse

from checkin.draw import odds_of, probabilities_of
from checkin.models import DropTable
from checkin.queries import items_of
from gateway.admin.audit import details_of
from rewards.models import BadgeTrack
from tests.checkin.admin.pages import form_of, percent, plain, publish, review
from tests.checkin.items import item
from tests.checkin.rows import draft_table, everything, lowest, row_of
from tests.factories import UserFactory
from tests.staff import browser_of, confirm, messages_of, prove
from tests.threads import waits_for_this_transaction
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_draft_is_written_by_one_person_and_published_by_another(author: User, approver: User) -> None:
    badge = lowest(BadgeTrack.SUBSCRIBER)
    rows = [{"drop_type": "EXPERIENCE", "weight": 3, "value_min": "5", "value_max": "9"}]
    answer = browser_of(author).post(reverse("admin:checkin_droptable_add"), form_of(rows, badge=badge.pk))
    assert answer.status_code == 302
    table = DropTable.objects.get(badge=badge, version=2)
    assert (table.author, table.published_at) == (author, None)
    assert table.items.get().value_max == 9

    assert "is in force" in publish(browser_of(approver), table)

    table.refresh_from_db()
    assert table.published_by == approver
    assert LogEntry.objects.filter(user=approver, object_id=table.pk).exists()


def test_the_author_cannot_publish(author: User, draft: DropTable) -> None:
    before = everything()
    assert "A second person is needed" in publish(browser_of(author), draft)
    assert everything() == before


def test_only_who_may_publish_is_offered_to(draft: DropTable) -> None:
    reader = UserFactory.create(profile_address=None, is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename="view_droptable"))
    before = everything()
    assert "is in force" not in publish(browser_of(reader), draft)
    assert everything() == before


def test_the_page_shows_what_is_approved(approver: User, draft: DropTable) -> None:
    draft.items.filter(drop_type="EXPERIENCE").update(value_max=10**9 - 1)
    page, _ = review(browser_of(approver), draft)
    items = items_of([draft])
    for one, chance in zip(items, probabilities_of(items), strict=True):
        assert one.drop_type in page
        assert f">{percent(chance)}<" in page
        assert f">{one.minutes or ''}<" in page
    for odds in odds_of(items):
        assert f">{plain(odds.expected)}<" in page
    assert "EXPERIENCE is worth" in page


def _another_weight(draft: DropTable) -> Any:
    row = draft.items.latest("id")
    return draft.items.filter(pk=row.pk).update(weight=row.weight + 1)


def _one_more(draft: DropTable) -> Any:
    return row_of(draft, item("CREDITS", least=Decimal(1), most=Decimal(1))).save()


def _one_less(draft: DropTable) -> Any:
    return draft.items.filter(drop_type="BONUS_CREDITS_BACK").delete()


@pytest.mark.parametrize("change", [_another_weight, _one_more, _one_less])
def test_a_draft_that_changed_after_it_was_reviewed_is_not_published(
    approver: User, draft: DropTable, change: Any
) -> None:
    client = browser_of(approver)
    _, unseen = review(client, draft)
    change(draft)
    before = everything()

    message = messages_of(confirm(client, "checkin_droptable", "publish", draft, **unseen))

    assert "not the one that was reviewed" in message
    assert everything() == before
    assert LogEntry.objects.filter(change_message__contains="drop-table-changed").exists()
    assert "is in force" in publish(client, draft)


def test_what_was_reviewed_of_another_table_approves_nothing(
    author: User, approver: User, draft: DropTable
) -> None:
    other = draft_table(lowest(BadgeTrack.SUBSCRIBER), items_of([draft]), author=author)
    client = browser_of(approver)
    _, unseen = review(client, other)
    before = everything()
    assert "not the one" in messages_of(confirm(client, "checkin_droptable", "publish", draft, **unseen))
    assert "reviewed" in confirm(client, "checkin_droptable", "publish", draft).context["form"].errors  # type: ignore[attr-defined]
    assert everything() == before


def test_several_drafts_are_reviewed_on_one_page(author: User, approver: User, draft: DropTable) -> None:
    other = draft_table(lowest(BadgeTrack.SUBSCRIBER), items_of([draft]), author=author)
    page = publish(browser_of(approver), draft, other)
    assert page.count("It is in force.") == 2
    assert not DropTable.objects.filter(published_at=None).exists()


def test_the_log_keeps_what_was_reviewed(approver: User, draft: DropTable) -> None:
    client = browser_of(approver)
    _, unseen = review(client, draft)
    confirm(client, "checkin_droptable", "publish", draft, **unseen)
    entry = LogEntry.objects.get(user=approver, object_id=draft.pk)
    assert details_of(entry)["changes"]["reviewed"] == ["", unseen["reviewed"]]


@pytest.mark.django_db(transaction=True)
def test_an_item_that_is_written_while_publish_is_pressed_is_not_published(
    approver: User, draft: DropTable
) -> None:
    client = browser_of(approver)
    _, unseen = review(client, draft)
    press = partial(confirm, client, "checkin_droptable", "publish", draft, **unseen)
    with waits_for_this_transaction(press) as pressed:
        _another_weight(draft)
    assert "not the one that was reviewed" in messages_of(pressed.result())
    draft.refresh_from_db()
    assert draft.published_at is None


def test_a_draft_is_published_by_finance(approver: User, draft: DropTable) -> None:
    _, unseen = review(browser_of(approver), draft)
    prove("checkin_droptable", "publish", draft, roles={"finance"}, reviewed=unseen["reviewed"])
    draft.refresh_from_db()
    assert draft.published_at is not None
