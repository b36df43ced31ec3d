"""The pages carry the operator's name, logo, colours and links; a colour that cannot be read is refused."""

import secrets
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as settings_of_django
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from gateway import env
from gateway.web.brand import GROUNDS_DARK, GROUNDS_LIGHT, READABLE, contrast, readable_colour, tinted_grounds

pytestmark = pytest.mark.django_db


def test_a_page_is_the_operators(client: Client, settings: Any, tmp_path: Path) -> None:
    name, mark = f"Relay of {secrets.token_hex(4)}", secrets.token_bytes(9)
    (logo := tmp_path / "logo.png").write_bytes(mark)
    settings.BRAND_NAME, settings.BRAND_LOGO_FILE, settings.BRAND_COLOR = name, str(logo), "#7a1f5c"
    settings.BRAND_SUPPORT, settings.BRAND_TERMS_URL = "help@relay.example", "https://relay.example/terms"
    settings.BRAND_ORDER_BUTTON = "Buy & pay"

    page = client.get("/account").content.decode()

    assert f"My account – {name}" in page
    assert "--accent:#7a1f5c" in page
    assert 'href="mailto:help@relay.example"' in page
    assert 'data-terms href="https://relay.example/terms"' in page
    assert 'data-order-button="Buy &amp; pay"' in page
    assert "Imprint" not in page
    response = client.get("/logo")
    assert (response.content, response["Content-Type"]) == (mark, "image/png")
    assert client.get("/favicon.ico")["Location"] == "/logo"


def test_the_products_own_logo_is_the_one_of_the_admin(client: Client) -> None:
    assert client.get("/logo").status_code == 404
    assert 'rel="icon" href="/static/staff/favicon.svg"' in client.get("/account").content.decode()


@pytest.mark.parametrize(
    ("colour", "grounds"),
    [("#f2a93b", GROUNDS_LIGHT), ("#0f6f68", GROUNDS_DARK), ("teal", GROUNDS_LIGHT), ("#fff", GROUNDS_DARK)],
)
def test_a_colour_that_cannot_be_read_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, colour: str, grounds: tuple[str, ...]
) -> None:
    monkeypatch.setenv("BRAND_COLOR", colour)

    with pytest.raises(ImproperlyConfigured, match="BRAND_COLOR"):
        env.parsed("BRAND_COLOR", "#0f6f68", parse=partial(readable_colour, grounds=grounds))


def test_the_default_colours_and_their_texts_have_sufficient_contrast() -> None:
    for colour, on, grounds in (
        (settings_of_django.BRAND_COLOR, "#ffffff", GROUNDS_LIGHT),
        (settings_of_django.BRAND_COLOR_DARK, GROUNDS_DARK[1], GROUNDS_DARK),
    ):
        assert all(contrast(colour, ground) >= READABLE for ground in (on, *tinted_grounds(colour, grounds)))


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


def test_the_grounds_are_those_of_the_style_sheet() -> None:
    style = (settings_of_django.BASE_DIR / "portal/static/portal/portal.css").read_text()

    for panel, ground in (GROUNDS_LIGHT, GROUNDS_DARK):
        assert f"--ground: {ground}; --panel: {panel};" in style


@pytest.mark.parametrize(
    ("accepts", "kind"), [("text/html,*/*", "text/html"), ("*/*", "application/problem+json")]
)
def test_browsers_get_a_page_and_programs_a_problem_document(client: Client, accepts: str, kind: str) -> None:
    response = client.get("/nothing-here", HTTP_ACCEPT=accepts)

    assert response.status_code == 404
    assert response["Content-Type"].startswith(kind)
    assert client.get("/api/nothing-here", HTTP_ACCEPT=accepts)["Content-Type"] == "application/problem+json"


def test_a_page_is_in_the_language_that_the_reader_prefers_or_has_chosen(client: Client) -> None:
    preferred = client.get("/", HTTP_ACCEPT_LANGUAGE="fr, de-AT;q=0.8, en;q=0.5")
    assert '<html lang="de">' in preferred.content.decode()
    assert {"Accept-Language", "Cookie"} <= {part.strip() for part in preferred["Vary"].split(",")}
    assert '<html lang="en">' in client.get("/", HTTP_ACCEPT_LANGUAGE="fr").content.decode()

    response = client.get("/account?language=de")

    assert (response.status_code, response["Location"]) == (302, "/account")
    page = client.get("/account", HTTP_ACCEPT_LANGUAGE="en").content.decode()
    assert "Mein Konto" in page
    [words] = [part for part in page.split('"') if part.startswith("/account/words/de.")]
    script = client.get(words)
    assert "Verlauf" in script.content.decode()
    assert script["Cache-Control"] == "public, max-age=31536000, immutable"
    assert client.get("/account/words/de.000000000000.js").status_code == 404
    assert client.get("/account/words/xx.000000000000.js").status_code == 404


def test_robots_may_not_crawl_the_account_page(client: Client) -> None:
    assert "Disallow: /account" in client.get("/robots.txt").content.decode()
