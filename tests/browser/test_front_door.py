"""Staff come in through the form and find the front page, by day and by night."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.admin_client import AdminClient, Scheme, employ


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_staff_log_in_and_see_the_front_page(
    admin_in: Callable[[Scheme], AdminClient], scheme: Scheme
) -> None:
    admin = admin_in(scheme)
    admin.open("/admin/")
    admin.picture(f"login-{scheme}")

    page = admin.log_in(employ())
    admin.picture(f"front-{scheme}")

    expect(page.get_by_role("link", name="Relay transactions").first).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark')") == (scheme == "dark")


def test_what_the_policy_forbids_is_a_complaint(admin: AdminClient) -> None:
    page = admin.open("/admin/login/")
    assert admin.complaints == []

    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.wasHere = true";
            document.body.append(script);
        }"""
    )

    assert page.evaluate("window.wasHere") is None
    assert [complaint for complaint in admin.complaints if "Content Security Policy" in complaint]
    admin.complaints.clear()


def test_a_request_to_another_host_is_a_complaint(admin: AdminClient) -> None:
    page = admin.open("/problems/")

    page.evaluate("new Image().src = 'http://elsewhere.invalid/pixel.png'")

    assert [complaint for complaint in admin.complaints if "elsewhere.invalid" in complaint]
    admin.complaints.clear()
