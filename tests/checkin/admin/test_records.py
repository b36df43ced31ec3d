"""Check-ins, seeds and the switch in the admin: read, and no secret among it."""

import secrets
from datetime import datetime
from typing import Any

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from checkin.models import DailySeed
from checkin.queries import CHECK_INS
from checkin.services import seeds
from checkin.services.checkins import execute
from gateway.admin import columns
from gateway.staff.models import Pause
from gateway.staff.pauses import is_paused
from rewards.models import Badge
from tests.checkin.admin.pages import page_of
from tests.checkin.conftest import earner
from tests.checkin.rows import draft_table, everything
from tests.factories import UserFactory
from tests.staff import browser_of, confirm, prove
from users.models import User

pytestmark = pytest.mark.django_db
_READ_ONLY = ["checkin", "dailyseed"]


def test_no_page_shows_a_salt_or_a_secret_seed(author: User, now: datetime) -> None:
    check_in = execute(user=earner(), now=now)
    seed = check_in.seed
    client = browser_of(author)
    pages = [
        page_of(client, "dailyseed", seed.pk),
        page_of(client, "checkin", check_in.pk),
        *(client.get(reverse(f"admin:checkin_{model}_changelist")).content.decode() for model in _READ_ONLY),
    ]
    assert all(seed.commitment in page for page in (pages[0], pages[3]))
    for secret in (seeds.secret_seed_of(seed), bytes(seed.salt)):
        assert not [page for page in pages for text in (secret.hex(), str(secret)) if text in page]
    assert not [page for page in pages if "salt" in page.lower()]
    assert not DailySeed.objects.exclude(revealed_seed="").exists()


def test_check_ins_are_found_by_address_and_never_changed(author: User, now: datetime) -> None:
    mine, other = (execute(user=earner(), now=now) for _ in range(2))
    client = browser_of(author)
    address = str(mine.user.profile_address)
    page = client.get(reverse("admin:checkin_checkin_changelist"), {"q": address.lower()}).content.decode()
    assert address in page
    assert str(other.user.profile_address) not in page
    assert columns.word_of(mine.result["type"]) in strip_tags(page)
    before = everything()
    for model, row in (("checkin", mine), ("dailyseed", mine.seed)):
        change = reverse(f"admin:checkin_{model}_change", args=[row.pk])
        assert client.post(change, {"attempt": 9}).status_code == 403
        assert client.post(reverse(f"admin:checkin_{model}_add"), {}).status_code == 403
        delete = reverse(f"admin:checkin_{model}_delete", args=[row.pk])
        assert client.post(delete, {"post": "yes"}).status_code == 403
    assert everything() == before


def test_staff_pause_and_resume_with_a_reason(author: User) -> None:
    client, reason = browser_of(author), secrets.token_hex(8)
    confirm(client, "gateway_admin_pause", "pause_check_ins", reason=" ")
    assert not Pause.objects.exists()
    confirm(client, "gateway_admin_pause", "pause_check_ins", reason=reason)
    assert is_paused(CHECK_INS)
    row = Pause.objects.get()
    assert (row.actor, row.reason) == (author, reason)
    change = reverse("admin:gateway_admin_pause_change", args=[row.pk])
    assert client.post(change, {"reason": "another"}).status_code == 403
    assert client.post(reverse("admin:gateway_admin_pause_add"), {"is_paused": "on"}).status_code == 403
    confirm(client, "gateway_admin_pause", "resume_check_ins")
    assert not is_paused(CHECK_INS)


@pytest.mark.parametrize("model", ["droptable", "checkin", "dailyseed"])
def test_a_list_runs_no_more_queries_for_more_rows(
    author: User, now: datetime, model: str, django_assert_max_num_queries: Any
) -> None:
    client, path = browser_of(author), reverse(f"admin:checkin_{model}_changelist")
    client.get(path)
    for number in range(8):
        execute(user=earner(), now=now)
        draft_table(
            Badge.objects.all()[number], [], author=UserFactory.create(profile_address=None, is_staff=True)
        )
        Pause.objects.create(
            name=CHECK_INS, is_paused=False, actor=UserFactory.create(profile_address=None), reason="x"
        )
    with django_assert_max_num_queries(8):
        client.get(path)


def test_check_ins_are_paused_and_resumed_by_operations(db: None) -> None:
    prove("gateway_admin_pause", "pause_check_ins", roles={"operations"})
    assert is_paused(CHECK_INS)
    prove("gateway_admin_pause", "resume_check_ins", roles={"operations"})
    assert not is_paused(CHECK_INS)
