"""What staff choose for their lists stays: filters, the scheme, the sidebar."""

from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, employ


def test_a_closed_sidebar_and_a_chosen_scheme_are_kept(admin: AdminClient) -> None:
    page = admin.enter(employ(), "/admin/users/user/")
    page.locator('[x-on\\:click="openUserLinks = !openUserLinks"]').click()
    page.locator("[x-on\\:click=\"switchTheme('dark')\"]").click()
    links = page.locator("#nav-sidebar-apps")
    expect(links).to_be_visible()

    page.get_by_text("dock_to_right").first.click()
    expect(links).to_be_hidden()

    admin.open("/admin/relay/attempt/")
    expect(links).to_be_hidden()
    assert page.evaluate("document.documentElement.classList.contains('dark')")


def test_a_filtered_list_is_saved_under_a_name_and_forgotten(admin: AdminClient) -> None:
    page = admin.enter(employ(), "/admin/users/user/?is_staff__exact=1")
    saved = page.get_by_role("navigation", name="Saved lists")
    saved.get_by_label("Name of the list").fill("Colleagues <b>")
    saved.get_by_role("button", name="Save").click()

    admin.open("/admin/users/user/")
    assert violations(page) == []
    saved.get_by_role("link", name="Colleagues <b>").click()
    page.wait_for_url("**/user/?is_staff__exact=1")

    saved.get_by_role("button", name="Forget Colleagues <b>").click()
    expect(saved.get_by_role("link")).to_have_count(0)
    admin.open("/admin/users/user/")
    expect(saved).to_have_count(0)
