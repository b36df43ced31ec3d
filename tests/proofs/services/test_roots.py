"""Roots cover committed entries, and nothing slips under them afterwards."""

import json
import secrets
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from credits.models import CreditEntry
from proofs import leaf_texts
from proofs.keys import is_signed, public_keys
from proofs.models import LedgerRoot, RootTree
from proofs.services import leaves, roots
from proofs.services.roots import WritersBusy, close_roots, text_of
from tests.database import tamper
from tests.factories import UserFactory
from tests.proofs.roots import audited, covered_ledger, export_faults, grant


def test_each_root_covers_the_entries_since_the_one_before_it_and_is_signed(db: None) -> None:
    covered_ledger()
    first, second = LedgerRoot.objects.order_by("number")
    assert [(root.number, root.entry_count) for root in (first, second)] == [(1, 3), (2, 3)]
    assert (first.previous, second.previous) == ("", leaf_texts.root_hash(text_of(first)))
    for root in (first, second):
        assert is_signed(text_of(root), root.signature, root.key_id, public_keys())
        assert not is_signed(text_of(root) + " ", root.signature, root.key_id, public_keys())
    assert second.last_entry_id == CreditEntry.objects.latest("pk").pk
    assert (audited(), export_faults()) == ([], [])


def test_every_column_of_an_entry_is_in_its_leaf(db: None) -> None:
    columns = {field.attname for field in CreditEntry._meta.concrete_fields}
    assert columns == set(leaf_texts.EntryRow._fields) - {"profile"}
    members = json.loads(leaf_texts.leaf_text(_row(), leaf_texts.hidden(_row(), b"secret"), b"seed"))
    assert len(members) == len(columns) + 2  # the profile and the leaf's salt
    texts = {leaf_texts.leaf_text(_row(), leaf_texts.hidden(_row(), b"secret"), b"seed")}
    for name, value in _row()._asdict().items():
        changes: dict[str, Any] = {name: _another(value)}
        row = _row()._replace(**changes)
        texts.add(leaf_texts.leaf_text(row, leaf_texts.hidden(row, b"secret"), b"seed"))
    assert len(texts) == 1 + len(leaf_texts.EntryRow._fields)


def _another(value: Any) -> Any:
    if isinstance(value, datetime):
        return value + timedelta(microseconds=1)
    return value + ("x" if isinstance(value, str) else 100)


def _row() -> leaf_texts.EntryRow:
    moment = datetime(2026, 11, 22, 19, 0, tzinfo=UTC)
    return leaf_texts.EntryRow(1, 2, 3, 4, 5, 6, 7, moment, "key", "SURVEYS", "reason", "0xprofile")


def test_equal_entries_have_unequal_leaves(db: None) -> None:
    """A user cannot guess an entry and find its hash in another user's proof."""
    covered_ledger()
    tree = RootTree.objects.earliest("root")
    leaf = leaf_texts.leaf_text(_row(), leaf_texts.Hidden("", ""), bytes(tree.seed))
    assert leaf != leaf_texts.leaf_text(_row(), leaf_texts.Hidden("", ""), secrets.token_bytes(32))


def test_a_root_without_entries_is_closed_only_after_a_while(db: None) -> None:
    covered_ledger()
    assert close_roots() == []
    tamper("UPDATE credits_root SET closed_at = closed_at - interval '46 minutes'")
    (empty,) = close_roots()
    assert (empty.number, empty.entry_count) == (3, 0)


def test_a_ledger_with_history_gets_several_roots_in_one_run(db: None, monkeypatch: Any) -> None:
    monkeypatch.setattr(roots, "MAX_ENTRIES", 2)
    user = UserFactory.create()
    for _ in range(5):
        grant(user, 7)
    assert [root.entry_count for root in close_roots()] == [2, 2, 1]
    assert (audited(), export_faults()) == ([], [])


def test_without_a_key_nothing_is_signed(db: None, settings: Settings) -> None:
    grant(UserFactory.create(), 7)
    settings.LEDGER_SIGNING_KEY = ""
    with pytest.raises(ImproperlyConfigured, match="LEDGER_SIGNING_KEY"):
        close_roots()
    assert not LedgerRoot.objects.exists()


def test_entries_are_read_and_hashed_page_by_page(db: None, monkeypatch: Any) -> None:
    """However many are under a root, few are in memory, and the root is that of all."""
    monkeypatch.setattr(leaves, "PAGE_SIZE", 2)
    for _ in range(5):
        grant(UserFactory.create(), 7)
    with CaptureQueriesContext(connection) as queries:
        [root] = close_roots()
    # Three pages and the end of them; then another look, which finds nothing more.
    assert sum("LEFT JOIN credits_erasedentry" in query["sql"] for query in queries) == 5
    assert root.entry_count == 5
    assert (audited(), export_faults()) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_no_root_is_closed_while_an_older_entry_may_still_be_committed() -> None:
    slow, quick = UserFactory.create(), UserFactory.create()
    posted, released = threading.Event(), threading.Event()

    def post_slowly() -> None:
        try:
            with transaction.atomic():
                grant(slow, 11)
                posted.set()
                released.wait(60)
        finally:
            connection.close()

    writer = threading.Thread(target=post_slowly)
    writer.start()
    try:
        assert posted.wait(60)
        newer = grant(quick, 13)
        # The newer entry is committed, and the older one is not.
        assert list(CreditEntry.objects.all()) == [newer]
        with pytest.raises(WritersBusy):
            close_roots(wait_seconds=0.1)
        assert not LedgerRoot.objects.exists()
    finally:
        released.set()
        writer.join()
    (root,) = close_roots()
    assert root.entry_count == 2
    assert audited() == []
