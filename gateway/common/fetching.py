"""Fetch small JSON documents of other parties, for periodic tasks."""

import json
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

_MAX_BYTES = 256 * 1024
_http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=3, read=5), retries=False)


class FetchFailed(Exception):
    """There was no answer, or none that is a JSON document; the text says which and quotes nothing."""


def fetch_json(url: str) -> Any:
    """
    Return the JSON document at this address. Redirects are not followed.

    Raises:
        FetchFailed: no answer in time, another status than 200, more than 256 KiB, or no JSON.
    """
    try:
        status, body = _get(url)
    except HTTPError as error:
        raise FetchFailed(f"no answer ({type(error).__name__})") from error
    if status != 200:
        raise FetchFailed(f"status {status}")
    if len(body) > _MAX_BYTES:
        raise FetchFailed(f"more than {_MAX_BYTES} bytes")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FetchFailed("no JSON") from error


def _get(url: str) -> tuple[int, bytes]:
    """Return status and body, of which no more is read than it takes to see that it is too long."""
    response = _http.request(
        "GET", url, preload_content=False, redirect=False, headers={"Accept": "application/json"}
    )
    try:
        return response.status, response.read(_MAX_BYTES + 1)
    finally:
        response.release_conn()
