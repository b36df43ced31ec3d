"""Staff come in through the form and find the front page, at night too."""

from playwright.sync_api import expect

from tests.browser.admin_client import AdminClient, AdminClientIn, employ


def test_staff_log_in_and_see_the_front_page_in_the_scheme_of_their_system(admin_in: AdminClientIn) -> None:
    admin = admin_in("dark")
    page = admin.log_in(employ())
    admin.picture("front-dark")

    expect(page.get_by_role("link", name="Relay transactions").first).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark')")


def test_a_violation_of_the_content_policy_fails_the_test(admin: AdminClient) -> None:
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
