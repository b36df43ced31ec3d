"""The timeline over HTTP: every list merged by time, in pages that neither repeat nor lose a row."""

import base64
import random
import secrets
from typing import Any
from urllib.parse import urlencode

import pytest
from django.utils.timezone import now
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from checkin.services import checkins
from credits.models import EntrySource
from credits.services import entries
from tests.factories import AttemptFactory, UserFactory
from tests.portal.history_rows import earned, relayed
from users.models import User

pytestmark = pytest.mark.django_db
PATH = "/api/user/timeline"


def pages(client: APIClient, access: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Read all pages."""
    read, address = [], f"{PATH}?{urlencode({'limit': 25, **query})}"
    while address:
        response = client.get(address, HTTP_AUTHORIZATION=f"Bearer {access}")
        assert response.status_code == 200, response.content
        assert response["Cache-Control"] == "no-store"
        read.append(response.json()["results"])
        address = response.json()["next"]
    return read


def test_pages_show_each_row_of_every_list_once_and_the_newest_first(
    client: APIClient, access: str, user: User
) -> None:
    relayed(user, 7)
    earned(user, 5)
    checkins.execute(user=user, now=now())
    entries.grant(
        user=user, credits=9, source=EntrySource.SURVEYS, key=f"earning:cpx-research:{secrets.token_hex(4)}"
    )
    expected = 7 + 5 + 1 + 1

    for limit in (1, random.randint(2, expected - 1), expected):
        read = pages(client, access, limit=limit)
        rows = [row for page in read for row in page]

        assert [len(page) for page in read[:-1]] == [limit] * (len(read) - 1)
        assert len(rows) == expected
        assert sum(row["kind"] == "call" for row in rows) == 7
        assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    assert rows[0]["network"] == "CPX Research"
    assert rows[0]["credits"] == 9
    assert rows[1]["kind"] == "check-in"
    assert (
        rows[1]["drop"]["type"] in {"EXPERIENCE", "CREDITS"} or rows[1]["drop"]["effectiveTimeInMinutes"] > 0
    )
    assert {row["credits"] for row in rows if row["kind"] == "call"} == {-1}


def test_rows_of_one_kind_are_listed_in_pages_of_their_own(
    client: APIClient, access: str, user: User
) -> None:
    relayed(user, 3)
    earned(user, 4)
    checkins.execute(user=user, now=now())

    for kind, count in (("call", 3), ("entry", 4), ("check-in", 1)):
        rows = [row for page in pages(client, access, limit=2, kind=kind) for row in page]
        assert [row["kind"] for row in rows] == [kind] * count


def test_a_call_is_found_by_any_of_its_hashes_and_only_by_its_owner(
    client: APIClient, access: str, user: User
) -> None:
    relayed(user, 3)
    relayed(other := UserFactory.create(), 1)
    wanted, foreign = user.relay_transactions.earliest("pk"), other.relay_transactions.get()
    hashes = [
        AttemptFactory.create(relay_transaction=call).transaction_hash for call in (wanted, wanted, foreign)
    ]

    for text in (
        hashes[0],
        hashes[1].upper().replace("0X", "0x"),
        hashes[0][:8],
        f"{hashes[1][:8]}…{hashes[1][-4:]}",
    ):
        ((row,),) = pages(client, access, hash=text, kind="entry")
        assert row["transactionHash"] == wanted.transaction_hash
    assert pages(client, access, hash=hashes[2]) == [[]]
    assert pages(client, access, hash=f"{hashes[0][:8]}…{'0' * 8}") == [[]]


def test_a_page_takes_one_statement_beside_the_session(
    client: APIClient, access: str, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    relayed(user, 30)
    with django_assert_num_queries(2):
        client.get(PATH, HTTP_AUTHORIZATION=f"Bearer {access}")


def test_others_rows_are_not_shown(client: APIClient, access: str, user: User) -> None:
    other = User.objects.create(username=secrets.token_hex(8), profile_address="0x" + "11" * 20)
    earned(other, 3)
    checkins.execute(user=other, now=now())

    assert pages(client, access) == [[]]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=101",
        "limit=x",
        "cursor=x",
        "kind=calls",
        "hash=0x12345",
        "hash=123456",
        "cursor=" + base64.urlsafe_b64encode(b'[1, 2, "2026-02-30", 1]').decode(),
        "cursor=" + base64.urlsafe_b64encode(b'[true, 2, "2026-02-03", 1]').decode(),
        "cursor=" + base64.urlsafe_b64encode(b'[1, 2, "2026-02-03", 40000]').decode(),
    ],
)
def test_an_invalid_cursor_is_refused(client: APIClient, access: str, query: str) -> None:
    response = client.get(f"{PATH}?{query}", HTTP_AUTHORIZATION=f"Bearer {access}")

    assert response.status_code == 400
    assert response.json()["code"] == "invalid-request"


def test_the_timeline_needs_a_token(client: APIClient) -> None:
    assert client.get(PATH).status_code == 401
