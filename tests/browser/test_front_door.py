"""Staff come in through the form and find the front page, by day and by night."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.desk import Desk, Scheme, employ


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_staff_log_in_and_see_the_front_page(desk_in: Callable[[Scheme], Desk], scheme: Scheme) -> None:
    desk = desk_in(scheme)
    desk.open("/admin/")
    desk.picture(f"login-{scheme}")

    page = desk.log_in(employ())
    desk.picture(f"front-{scheme}")

    expect(page.get_by_role("link", name="Relay transactions").first).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark')") == (scheme == "dark")


def test_what_the_policy_forbids_is_a_complaint(desk: Desk) -> None:
    page = desk.open("/admin/login/")
    assert desk.complaints == []

    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.wasHere = true";
            document.body.append(script);
        }"""
    )

    assert page.evaluate("window.wasHere") is None
    assert [complaint for complaint in desk.complaints if "Content Security Policy" in complaint]
    desk.complaints.clear()


def test_a_request_to_another_host_is_a_complaint(desk: Desk) -> None:
    page = desk.open("/problems/")

    page.evaluate("new Image().src = 'http://elsewhere.invalid/pixel.png'")

    assert [complaint for complaint in desk.complaints if "elsewhere.invalid" in complaint]
    desk.complaints.clear()
