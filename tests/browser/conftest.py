"""A browser, a live server, and a desk before them; a complaint of the browser fails the test."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.browser.chromium import find_chromium
from tests.browser.desk import Desk, Scheme

# Sandboxes of the browser need rights that containers do not give; it sees our own pages only.
_ARGUMENTS = ("--no-sandbox", "--no-zygote", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars")
_PATIENCE_MILLISECONDS = 120_000


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield the running browser; one for all tests of this folder."""
    chromium = find_chromium()
    # The driver's event loop lives in this thread, where Django would suspect every query of blocking it.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=_PATIENCE_MILLISECONDS)
    with sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=chromium.path,
            args=list(_ARGUMENTS),
            timeout=_PATIENCE_MILLISECONDS,
            env={**os.environ, **chromium.environment},
        )
        yield running
        running.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Return where pictures go: the folder that SCREENSHOTS names, or one of the test's own."""
    named = os.environ.get("SCREENSHOTS")
    folder = Path(named) if named else tmp_path / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def desk_in(browser: Browser, live_server: LiveServer, pictures: Path) -> Iterator[Callable[[Scheme], Desk]]:
    """Open desks of either colour scheme, and see at the end that none has complained."""
    desks: list[Desk] = []

    def sit_down(scheme: Scheme) -> Desk:
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 900})
        context.set_default_timeout(_PATIENCE_MILLISECONDS)
        desks.append(Desk(context.new_page(), live_server.url, pictures))
        return desks[-1]

    yield sit_down
    complaints = [complaint for desk in desks for complaint in desk.complaints]
    for desk in desks:
        desk.page.context.close()
    assert complaints == []


@pytest.fixture
def desk(desk_in: Callable[[Scheme], Desk]) -> Desk:
    """A desk in the light."""
    return desk_in("light")
