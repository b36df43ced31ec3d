"""Notes on a person: who, when and what; kept as written, shown to all roles, and erased with the person."""

import secrets
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, transaction
from django.utils import timezone

from tests.factories import UserFactory
from tests.staff import browser_of, member
from users.models import AccountDeletion, Note
from users.services import deletion

pytestmark = pytest.mark.django_db


def test_a_note_is_written_by_support_or_finance_read_by_all_and_stays_out_of_the_log() -> None:
    person, text = UserFactory.create(), f"promised a call <b>{secrets.token_hex(8)}</b>"
    url, page = f"/admin/users/user/{person.pk}/note/", f"/admin/users/user/{person.pk}/change/"
    operations = browser_of(member("operations"))
    assert operations.post(url, {"text": text}).status_code == 403
    clerk = member("support")
    assert browser_of(clerk).post(url, {"text": "  "}).context["note_form"].errors
    assert not Note.objects.exists()
    response = browser_of(clerk).post(url, {"text": text})
    assert response["Location"] == f"{page}#notes"
    note = Note.objects.get()
    assert (note.person, note.author, note.text) == (person, clerk, text)
    shown = operations.get(page).content.decode()
    assert text not in shown
    assert text.replace("<", "&lt;").replace(">", "&gt;") in shown
    assert url not in shown
    assert url in browser_of(member("finance")).get(page).content.decode()
    [entry] = LogEntry.objects.filter(change_message__contains="add note")
    assert text[:20] not in entry.change_message
    # Staff are no such people.
    assert browser_of(clerk).post(f"/admin/users/user/{clerk.pk}/note/", {"text": text}).status_code == 404


def test_a_note_cannot_be_changed_or_deleted() -> None:
    note = Note.objects.create(person=UserFactory.create(), author=member("support"), text="as it was")
    for change in (lambda: Note.objects.update(text="otherwise"), Note.objects.all().delete):
        with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
            change()
    note.refresh_from_db()
    assert note.text == "as it was"


@pytest.mark.usefixtures("owner_connection")
def test_only_the_users_notes_are_erased_with_the_user() -> None:
    person, other = UserFactory.create(), UserFactory.create()
    for about in (person, other):
        Note.objects.create(person=about, author=member("support"), text="x")
    an_hour_ago = timezone.now() - timedelta(hours=1)
    AccountDeletion.objects.create(
        user=person, status="billing-ended", requested_at=an_hour_ago, billing_ended_at=an_hour_ago
    )
    assert deletion.erase_due(now=timezone.now()) == 1
    assert [note.person for note in Note.objects.all()] == [other]
