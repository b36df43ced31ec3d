"""Staff come in through the form and find the front page, by day and by night."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Scheme
from tests.browser.desk import Desk, employ


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_staff_log_in_and_see_the_front_page(desk_in: Callable[[Scheme], Desk], scheme: Scheme) -> None:
    desk = desk_in(scheme)
    desk.open("/admin/")
    desk.picture(f"login-{scheme}")

    page = desk.log_in(employ())
    desk.picture(f"front-{scheme}")

    expect(page.get_by_role("link", name="Relay transactions").first).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark')") == (scheme == "dark")
