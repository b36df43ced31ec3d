"""A browser and a live server; a complaint of the browser fails the test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from tests.browser.admin_client import AdminClient, Scheme
from tests.browser.chromium import PATIENCE_MILLISECONDS, running_browser


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Yield the running browser; one for all tests of this folder."""
    with running_browser() as running:
        yield running


@pytest.fixture
def admin_in(
    browser: Browser, live_server: LiveServer, pictures: Path | None
) -> Iterator[Callable[[Scheme], AdminClient]]:
    """Open windows of either colour scheme; check at the end that there are no complaints."""
    clients: list[AdminClient] = []

    def open_window(scheme: Scheme) -> AdminClient:
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1440, "height": 900})
        context.set_default_timeout(PATIENCE_MILLISECONDS)
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
