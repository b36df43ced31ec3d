"""A browser and a live server; a complaint of the browser fails the test."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests.browser.admin_client import AdminClient, Scheme
from tests.browser.chromium import find_chromium

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
def admin_in(
    browser: Browser, live_server: LiveServer, pictures: Path
) -> Iterator[Callable[[Scheme], AdminClient]]:
    """Open windows of either colour scheme; check at the end that there are no complaints."""
    clients: list[AdminClient] = []

    def open_window(scheme: Scheme) -> AdminClient:
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 900})
        context.set_default_timeout(_PATIENCE_MILLISECONDS)
        clients.append(AdminClient(context.new_page(), live_server.url, pictures))
        return clients[-1]

    yield open_window
    complaints = [complaint for admin in clients for complaint in admin.complaints]
    for admin in clients:
        admin.page.context.close()
    assert complaints == []


@pytest.fixture
def admin(admin_in: Callable[[Scheme], AdminClient]) -> AdminClient:
    """A window in the light colour scheme."""
    return admin_in("light")
