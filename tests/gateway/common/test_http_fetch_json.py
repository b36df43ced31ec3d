"""A document of others is fetched within bounds, and any failure is one error that names its cause."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from devstack.ports import free_port
from gateway.common.http import FetchFailed, fetch_json
from tests.users.external_issuer import ExternalIssuer


@pytest.fixture
def server() -> Iterator[ExternalIssuer]:
    """A third party's server."""
    external = ExternalIssuer()
    with external.serving():
        yield external


def test_a_document_is_returned_as_it_is(server: ExternalIssuer) -> None:
    assert fetch_json(server.url) == {"keys": server.keys}
    server.document = ["Zürich", 1]
    assert fetch_json(server.url) == server.document


@pytest.mark.parametrize("status", [204, 301, 302, 404, 500])
def test_a_status_other_than_200_is_refused_and_a_redirect_is_not_followed(
    server: ExternalIssuer, status: int
) -> None:
    server.status = status

    with pytest.raises(FetchFailed, match=f"status {status}"):
        fetch_json(server.url)
    assert server.requests == 1


@pytest.mark.parametrize("document", [b"", b"<html>", b"\xff", b"[" * 5_000])
def test_invalid_json_is_refused(server: ExternalIssuer, document: Any) -> None:
    server.document = document

    with pytest.raises(FetchFailed, match="no JSON"):
        fetch_json(server.url)


def test_a_document_may_have_256_kibibytes(server: ExternalIssuer) -> None:
    server.document = json.dumps([]).encode() + b" " * (256 * 1024 - 2)
    assert fetch_json(server.url) == []
    server.document += b" "
    with pytest.raises(FetchFailed, match="more than 262144 bytes"):
        fetch_json(server.url)


def test_a_refused_connection_fails_the_fetch() -> None:
    with pytest.raises(FetchFailed, match="no response"):
        fetch_json(f"http://127.0.0.1:{free_port()}/keys")
