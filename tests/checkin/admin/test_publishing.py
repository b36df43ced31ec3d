"""A draft is published when a second person approves, as it was when that was asked for."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.urls import reverse

from checkin.draw import odds_of, probabilities_of
from checkin.models import DropTable
from checkin.queries import items_of
from gateway.admin.columns import word_of
from gateway.staff.models import ApprovalRequest
from rewards.models import BadgeTrack
from tests.checkin.admin.pages import form_of, percent, plain, publish, review
from tests.checkin.items import item
from tests.checkin.rows import draft_table, everything, lowest, row_of
from tests.factories import UserFactory
from tests.staff import approve, browser_of, confirm, messages_of, prove
from users.models import User

pytestmark = pytest.mark.django_db


def test_a_draft_is_written_by_one_staff_member_and_published_by_another(
    author: User, approver: User
) -> None:
    badge = lowest(BadgeTrack.SUBSCRIBER)
    rows = [{"drop_type": "EXPERIENCE", "weight": 3, "value_min": "5", "value_max": "9"}]
    response = browser_of(author).post(reverse("admin:checkin_droptable_add"), form_of(rows, badge=badge.pk))
    assert response.status_code == 302
    table = DropTable.objects.get(badge=badge, version=2)
    assert (table.author, table.published_at) == (author, None)
    assert table.items.get().value_max == 9

    assert "waits for a second person" in publish(browser_of(approver), table)
    table.refresh_from_db()
    assert table.published_at is None
    assert "is in force" in approve("operations")

    table.refresh_from_db()
    assert (table.published_by, bool(table.published_at)) == (approver, True)
    assert LogEntry.objects.filter(user=approver, object_id=table.pk).exists()


def test_the_publish_button_requires_the_permission(draft: DropTable) -> None:
    reader = UserFactory.create(profile_address=None, is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename="view_droptable"))
    before = everything()
    publish(browser_of(reader), draft)
    assert not ApprovalRequest.objects.exists()
    assert everything() == before


def test_the_page_shows_the_table_to_approve(approver: User, draft: DropTable) -> None:
    draft.items.filter(drop_type="EXPERIENCE").update(value_max=10**9 - 1)
    page, _ = review(browser_of(approver), draft)
    items = items_of([draft])
    for one, chance in zip(items, probabilities_of(items), strict=True):
        assert word_of(one.drop_type) in page
        assert f">{percent(chance)}<" in page
        assert f">{one.minutes or ''}<" in page
    for odds in odds_of(items):
        assert f">{plain(odds.expected)}<" in page
    assert "Experience gives" in page


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
    assert "waits for a second person" in publish(client, draft)


def test_a_review_of_another_table_approves_nothing(author: User, approver: User, draft: DropTable) -> None:
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
    assert page.count("waits for a second person") == 2
    assert set(ApprovalRequest.objects.values_list("subject", flat=True)) == {str(draft), str(other)}


def test_finance_requests_publication(approver: User, draft: DropTable) -> None:
    _, unseen = review(browser_of(approver), draft)
    prove("checkin_droptable", "publish", draft, roles={"finance"}, reviewed=unseen["reviewed"])
    draft.refresh_from_db()
    assert draft.published_at is None
