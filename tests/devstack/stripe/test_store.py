"""The store: all of a unit or nothing of it, on disk as in memory."""

from pathlib import Path

import pytest

from devstack.stripe.store import CommittingError, Store


def names(store: Store) -> list[str]:
    """Return the names of the things, in their order."""
    return [thing["name"] for thing in store.all("thing")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with two things."""
    store = Store(tmp_path / "store.sqlite3")
    with store.transaction():
        for number in (1, 2):
            store.add({"object": "thing", "id": str(number), "name": f"old {number}"})
    return store


def change_everything(store: Store, ending: Exception | None = None) -> None:
    """Change one thing, remove another and add a third; then raise what is to be raised."""
    changed = store.get("thing", "1")
    assert changed is not None
    changed["name"] = "new 1"
    store.remove("thing", "2")
    store.add({"object": "thing", "id": "3", "name": "new 3"})
    if ending is not None:
        raise ending


def test_a_unit_that_ends_well_is_kept(store: Store, tmp_path: Path) -> None:
    with store.transaction():
        change_everything(store)
    assert names(store) == names(Store(tmp_path / "store.sqlite3")) == ["new 1", "new 3"]


def test_a_unit_that_fails_leaves_nothing_and_tells_nobody(store: Store, tmp_path: Path) -> None:
    told: list[str] = []
    store.on_change(lambda kind, identifier, thing: told.append(identifier))
    with pytest.raises(ZeroDivisionError), store.transaction(), store.transaction():
        change_everything(store, ending=ZeroDivisionError())
    assert sorted(names(store)) == names(Store(tmp_path / "store.sqlite3")) == ["old 1", "old 2"]
    assert told == []


def test_a_refusal_may_keep_what_was_done_before_it(store: Store, tmp_path: Path) -> None:
    with pytest.raises(CommittingError), store.transaction():
        change_everything(store, ending=CommittingError())
    assert names(store) == names(Store(tmp_path / "store.sqlite3")) == ["new 1", "new 3"]


def test_watchers_are_told_of_every_change_and_of_what_is_gone(store: Store) -> None:
    told: dict[str, str | None] = {}
    store.on_change(
        lambda kind, identifier, thing: told.update({identifier: thing["name"] if thing else None})
    )
    with store.transaction():
        change_everything(store)
    assert told == {"1": "new 1", "2": None, "3": "new 3"}
    with store.transaction():
        store.clear()
    assert (names(store), told) == ([], {"1": None, "2": None, "3": None})
