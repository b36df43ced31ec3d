"""Statements that are written out: what they return, how they are counted, and that they are planned once."""

import secrets

import pytest
from django.db import IntegrityError, connection, transaction
from pytest_django import DjangoAssertNumQueries

from gateway.common import db
from tests.factories import UserFactory
from users.models import User

pytestmark = pytest.mark.django_db


def test_rows_are_returned_as_selected() -> None:
    pair = {"a": secrets.randbelow(2**31), "b": secrets.token_hex(8)}
    assert db.first_row("SELECT %(a)s::bigint, %(b)s::text", pair) == (pair["a"], pair["b"])
    assert db.only_row("SELECT %(b)s::text", pair) == (pair["b"],)
    both = "SELECT %(a)s::bigint UNION ALL SELECT -1"
    assert db.all_rows(both, pair) == [(pair["a"],), (-1,)]
    assert db.first_row(both, pair) == (pair["a"],)


def test_a_query_without_rows_returns_none_or_raises() -> None:
    nothing = "SELECT 1 WHERE %(no)s::boolean"
    assert db.first_row(nothing, {"no": False}) is None
    assert db.all_rows(nothing, {"no": False}) == []
    with pytest.raises(RuntimeError, match="no row"):
        db.only_row(nothing, {"no": False})


def test_a_statement_is_counted_and_its_errors_are_djangos(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    with django_assert_num_queries(1):
        db.first_row("SELECT 1", {})
    owner = UserFactory.create()
    again = "INSERT INTO users_user SELECT * FROM users_user WHERE id = %(id)s"
    with pytest.raises(IntegrityError, match="users_user_pkey"), transaction.atomic():
        db.first_row(again, {"id": owner.pk})


def test_a_violation_is_recognised_by_its_constraint_and_not_by_the_row() -> None:
    owner = UserFactory.create(first_name="users_user_username_key")
    again = "INSERT INTO users_user SELECT * FROM users_user WHERE id = %(id)s"
    with pytest.raises(IntegrityError) as refused, transaction.atomic():
        db.first_row(again, {"id": owner.pk})
    assert db.violated_constraint(refused.value) == "users_user_pkey"

    with pytest.raises(IntegrityError, match="users_user_username_key") as nameless, transaction.atomic():
        User.objects.filter(pk=owner.pk).update(last_name=None)
    assert db.violated_constraint(nameless.value) is None
    assert db.violated_constraint(IntegrityError("users_user_pkey")) is None


def test_a_repeated_statement_is_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Also where the suite runs behind a pooler, which would pass none on.
    monkeypatch.setattr(connection.connection, "prepare_threshold", 5)
    mark = secrets.token_hex(8)
    statement = f"SELECT %(n)s::bigint AS mark_{mark}"
    prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %(text)s"
    for n in range(12):
        assert db.first_row(statement, {"n": n}) == (n,)
    assert db.first_row(prepared, {"text": f"%mark_{mark}%"}) == (1,)


def test_statements_of_the_orm_are_never_prepared() -> None:
    for _ in range(12):
        User.objects.filter(username="nobody").exists()
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s", [1])
    prepared = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%users_user%%'"
    with connection.cursor() as cursor:
        cursor.execute(prepared, [])
        assert cursor.fetchone() == (0,)


def test_a_row_becomes_the_models_instance() -> None:
    owner = UserFactory.create()
    statement = f"SELECT {db.columns(User, 'owner')} FROM users_user AS owner WHERE id = %(id)s"  # noqa: S608
    instance = db.instance(User, db.only_row(statement, {"id": owner.pk}))
    expected = User.objects.values().get(pk=owner.pk)
    assert {name: getattr(instance, name) for name in expected} == expected
    assert not instance.get_deferred_fields()

    instance.first_name = secrets.token_hex(4)
    instance.save()
    assert User.objects.get(pk=owner.pk).first_name == instance.first_name
