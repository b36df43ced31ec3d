"""The pages for people are whole, cached, and ask no foreign host for anything."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from devstack.files import PROJECT
from tests.docs.pages import DOCS

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/", "/account", "/account/", "/sponsor"])
def test_a_page_loads_only_its_own_static_files(client: Client, path: str) -> None:
    response = client.get(path)

    assert response.status_code == 200
    loaded = re.findall(r'(?:src|<link[^>]*href)="([^"]+)"', response.content.decode())
    assert loaded
    assert all(name.startswith("/static/") and finders.find(name.removeprefix("/static/")) for name in loaded)
    assert response["Content-Security-Policy"]


def test_a_page_allows_only_read_methods(client: Client) -> None:
    assert client.post("/account").status_code == 405


def test_the_account_page_verifies_entries_by_the_documented_program() -> None:
    script = (PROJECT / "portal/static/portal/verify-entry.js").read_text()
    example = (DOCS / "examples/javascript/verify_entry.mjs").read_text()
    program = example[example.index("const utf8") : example.index("const [, program")].strip()

    assert program in script


def test_the_address_of_the_account_is_there_as_a_code_for_a_phone(client: Client, settings: Any) -> None:
    response = client.get("/account/code.svg")

    assert (response.status_code, response["Content-Type"]) == (200, "image/svg+xml")
    assert "max-age" in response["Cache-Control"]
    settings.PUBLIC_URL = "https://elsewhere.example"
    other = client.get("/account/code.svg").content
    assert other.startswith(b"<?xml")
    assert other != response.content


def test_the_extension_substitute_is_present_only_in_the_dev_stack(
    client: Client, settings: Any, tmp_path: Path
) -> None:
    assert settings.DEV_EXTENSION_FILE == ""
    assert client.get("/account/dev-extension.js").status_code == 404
    assert "dev-extension" not in client.get("/account").content.decode()
    (script := tmp_path / "extension.js").write_text("key")
    settings.DEV_EXTENSION_FILE = str(script)
    assert client.get("/account/dev-extension.js").content == b"key"
    assert '<script src="/account/dev-extension.js">' in client.get("/account").content.decode()
