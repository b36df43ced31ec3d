"""The check-in in the admin: drafts of one person, published by another; everything else to read."""

import secrets
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags
from django_otp import DEVICE_ID_SESSION_KEY
from django_otp.plugins.otp_totp.models import TOTPDevice

from checkin.draw import odds_of
from checkin.models import CheckInSwitch, DailySeed, DropItem, DropTable
from checkin.queries import is_paused, items_of, most_attempts
from checkin.services import seeds
from checkin.services.checkins import execute
from credits.models import Badge, BadgeTrack
from tests.checkin.conftest import earner
from tests.checkin.items import item
from tests.checkin.rows import draft_table, everything, lowest
from tests.factories import UserFactory
from tests.staff import confirm, prove
from users.models import User

pytestmark = pytest.mark.django_db
_READ_ONLY = ["checkin", "dailyseed"]


def browser(person: User) -> Client:
    """Return a browser of somebody who has shown a second factor."""
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    session = client.session
    session[DEVICE_ID_SESSION_KEY] = TOTPDevice.objects.create(user=person).persistent_id
    session.save()
    return client


@pytest.fixture
def author() -> User:
    """Return a member of staff who writes tables."""
    return UserFactory.create(profile_address=None, is_staff=True, is_superuser=True)


@pytest.fixture
def approver() -> User:
    """Return a member of staff who approves them."""
    return UserFactory.create(profile_address=None, is_staff=True, is_superuser=True)


@pytest.fixture
def draft(author: User) -> DropTable:
    """Return a draft that may be published."""
    items = [item("EXPERIENCE", least=Decimal(1), most=Decimal(3)), item("BONUS_CREDITS_BACK")]
    return draft_table(lowest(BadgeTrack.PERMANENT), items, author=author)


def page_of(client: Client, model: str, pk: int) -> str:
    """Return the text of a row's page."""
    answer = client.get(reverse(f"admin:checkin_{model}_change", args=[pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def act(client: Client, action: str, *tables: DropTable) -> str:
    """Choose an action for some tables and return the list as it is then."""
    body = {"action": action, "_selected_action": [table.pk for table in tables]}
    return client.post(reverse("admin:checkin_droptable_changelist"), body, follow=True).content.decode()


def publish(client: Client, table: DropTable) -> str:
    """Confirm the publishing of a table and return the page that follows."""
    return confirm(client, "checkin_droptable", "publish", table).content.decode()


def form_of(rows: list[dict[str, Any]], *, initial: int = 0, **others: Any) -> dict[str, Any]:
    """Return what the browser sends for a table with these items."""
    body: dict[str, Any] = {"items-TOTAL_FORMS": len(rows), "items-INITIAL_FORMS": initial, **others}
    for place, row in enumerate(rows):
        body |= {f"items-{place}-{name}": value for name, value in row.items()}
    return body


def test_a_draft_is_written_by_one_person_and_published_by_another(author: User, approver: User) -> None:
    badge = lowest(BadgeTrack.SUBSCRIBER)
    rows = [{"drop_type": "EXPERIENCE", "weight": 3, "value_min": "5", "value_max": "9"}]
    answer = browser(author).post(reverse("admin:checkin_droptable_add"), form_of(rows, badge=badge.pk))
    assert answer.status_code == 302
    table = DropTable.objects.get(badge=badge, version=2)
    assert (table.author, table.published_at) == (author, None)
    assert table.items.get().value_max == 9

    assert "is in force" in publish(browser(approver), table)

    table.refresh_from_db()
    assert table.published_by == approver
    assert LogEntry.objects.filter(user=approver, object_id=table.pk).exists()


def test_the_author_cannot_publish(author: User, draft: DropTable) -> None:
    before = everything()
    assert "A second person is needed" in publish(browser(author), draft)
    assert everything() == before


def test_only_who_may_publish_is_offered_to(draft: DropTable) -> None:
    reader = UserFactory.create(profile_address=None, is_staff=True)
    reader.user_permissions.set(_permissions("view_droptable"))
    before = everything()
    assert "is in force" not in publish(browser(reader), draft)
    assert everything() == before


def test_nobody_else_changes_a_draft(approver: User, draft: DropTable) -> None:
    row = draft.items.order_by("id")[0]
    before = everything()
    change = reverse("admin:checkin_droptable_change", args=[draft.pk])
    body = form_of([{"id": row.pk, "table": draft.pk, "weight": 999}], initial=1)
    assert browser(approver).post(change, body).status_code == 403
    delete = reverse("admin:checkin_droptable_delete", args=[draft.pk])
    assert browser(approver).post(delete, {"post": "yes"}).status_code == 403
    assert everything() == before


def test_the_author_changes_items_and_throws_drafts_away(author: User, draft: DropTable) -> None:
    rows = list(draft.items.order_by("id"))
    shown = [
        {
            "id": row.pk,
            "table": draft.pk,
            "drop_type": row.drop_type,
            "weight": 77,
            "value_min": row.value_min,
            "value_max": row.value_max,
            "minutes": row.minutes or "",
        }
        for row in rows
    ]
    change = reverse("admin:checkin_droptable_change", args=[draft.pk])
    assert browser(author).post(change, form_of(shown, initial=len(rows))).status_code == 302
    assert set(draft.items.values_list("weight", flat=True)) == {77}

    delete = reverse("admin:checkin_droptable_delete", args=[draft.pk])
    assert browser(author).post(delete, {"post": "yes"}).status_code == 302
    assert not DropTable.objects.filter(pk=draft.pk).exists()


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
    ],
)
def test_an_item_that_means_nothing_is_refused(author: User, row: dict[str, Any]) -> None:
    before = everything()
    body = form_of([row], badge=lowest(BadgeTrack.PERMANENT).pk)
    answer = browser(author).post(reverse("admin:checkin_droptable_add"), body)
    assert answer.status_code == 200
    assert answer.context["errors"]
    assert everything() == before


def test_a_published_table_is_shown_and_not_changed(author: User) -> None:
    table = DropTable.objects.order_by("id")[0]
    before = everything()
    page = page_of(browser(author), "droptable", table.pk)
    assert 'name="_save"' not in page
    for name in ("change", "delete"):
        path = reverse(f"admin:checkin_droptable_{name}", args=[table.pk])
        assert browser(author).post(path, {"post": "yes"}).status_code == 403
    assert everything() == before


def test_a_published_table_is_copied_to_change_it(approver: User) -> None:
    table = DropTable.objects.order_by("id")[0]
    act(browser(approver), "copy_as_draft", table)
    copy = DropTable.objects.get(badge=table.badge, version=table.version + 1)
    assert (copy.author, copy.published_at, copy.items.count()) == (approver, None, table.items.count())


def test_the_page_shows_odds_expected_values_and_faults(author: User, draft: DropTable) -> None:
    table = DropTable.objects.select_related("badge").order_by("id")[0]
    page = page_of(browser(author), "droptable", table.pk)
    assert table.badge
    for odds in odds_of(items_of([table])):
        day = odds.over(most_attempts(table.badge))
        for figure in (
            f"{float(odds.probability):.2%}",
            f"{float(odds.expected):.6f}",
            f"{float(odds.variance):.6f}",
        ):
            assert figure in page
        assert f"{float(day.expected):.6f}" in page
        assert f"{day.most.normalize():f}" in page
    DropItem.objects.filter(table=draft, drop_type="EXPERIENCE").delete()
    assert "It needs an item of experience" in page_of(browser(author), "droptable", draft.pk)


def test_no_page_shows_a_salt_or_a_secret_seed(author: User, now: datetime) -> None:
    check_in = execute(user=earner(), now=now)
    seed = check_in.seed
    client = browser(author)
    pages = [
        page_of(client, "dailyseed", seed.pk),
        page_of(client, "checkin", check_in.pk),
        *(client.get(reverse(f"admin:checkin_{model}_changelist")).content.decode() for model in _READ_ONLY),
    ]
    assert all(seed.commitment in page for page in (pages[0], pages[3]))
    for secret in (seeds.open_seed(seed), bytes(seed.salt)):
        assert not [page for page in pages for text in (secret.hex(), str(secret)) if text in page]
    assert not [page for page in pages if "salt" in page.lower()]
    assert not DailySeed.objects.exclude(revealed_seed="").exists()


def test_check_ins_are_found_by_address_and_never_changed(author: User, now: datetime) -> None:
    mine, other = (execute(user=earner(), now=now) for _ in range(2))
    client = browser(author)
    address = str(mine.user.profile_address)
    page = client.get(reverse("admin:checkin_checkin_changelist"), {"q": address.lower()}).content.decode()
    assert address in page
    assert str(other.user.profile_address) not in page
    assert mine.result["type"] in strip_tags(page)
    before = everything()
    for model, row in (("checkin", mine), ("dailyseed", mine.seed)):
        change = reverse(f"admin:checkin_{model}_change", args=[row.pk])
        assert client.post(change, {"attempt": 9}).status_code == 403
        assert client.post(reverse(f"admin:checkin_{model}_add"), {}).status_code == 403
        delete = reverse(f"admin:checkin_{model}_delete", args=[row.pk])
        assert client.post(delete, {"post": "yes"}).status_code == 403
    assert everything() == before


def test_staff_pause_and_go_on_with_a_reason(author: User) -> None:
    client, reason = browser(author), secrets.token_hex(8)
    confirm(client, "checkin_checkinswitch", "pause", reason=" ")
    assert not CheckInSwitch.objects.exists()
    confirm(client, "checkin_checkinswitch", "pause", reason=reason)
    assert is_paused()
    row = CheckInSwitch.objects.get()
    assert (row.actor, row.reason) == (author, reason)
    change = reverse("admin:checkin_checkinswitch_change", args=[row.pk])
    assert client.post(change, {"reason": "another"}).status_code == 403
    assert client.post(reverse("admin:checkin_checkinswitch_add"), {"is_open": "on"}).status_code == 403
    confirm(client, "checkin_checkinswitch", "resume")
    assert not is_paused()


@pytest.mark.parametrize("model", ["droptable", "checkin", "checkinswitch", "dailyseed"])
def test_a_list_asks_the_database_no_more_for_more_rows(
    author: User, now: datetime, model: str, django_assert_max_num_queries: Any
) -> None:
    client, path = browser(author), reverse(f"admin:checkin_{model}_changelist")
    client.get(path)
    for number in range(8):
        execute(user=earner(), now=now)
        draft_table(
            Badge.objects.all()[number], [], author=UserFactory.create(profile_address=None, is_staff=True)
        )
        CheckInSwitch.objects.create(is_open=True, actor=UserFactory.create(profile_address=None), reason="x")
    with django_assert_max_num_queries(8):
        client.get(path)


def _permissions(*codenames: str) -> Any:
    return Permission.objects.filter(codename__in=codenames)


def test_check_ins_are_paused_and_resumed_by_operations(db: None) -> None:
    prove("checkin_checkinswitch", "pause", roles={"operations"})
    assert is_paused()
    prove("checkin_checkinswitch", "resume", roles={"operations"})
    assert not is_paused()


def test_a_draft_is_published_by_finance(draft: DropTable) -> None:
    prove("checkin_droptable", "publish", draft, roles={"finance"})
    draft.refresh_from_db()
    assert draft.published_at is not None
