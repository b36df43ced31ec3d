"""Lists and pages of rows work under the policy: tabs, filters, menus, the sidebar."""

from playwright.sync_api import expect

from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, employ, follow
from tests.factories import UserFactory


def test_a_list_a_row_and_a_form_open(admin: AdminClient) -> None:
    person = employ()
    owner = UserFactory.create()
    page = admin.enter(person, "/admin/users/user/")
    admin.picture("users")
    follow(page.get_by_role("link", name=owner.username).first)
    admin.picture("user")
    admin.open("/admin/users/trustedimplementation/add/")
    admin.picture("form")


def test_the_sidebar_closes_and_stays_closed(admin: AdminClient) -> None:
    page = admin.enter(employ(), "/admin/users/user/")
    links = page.locator("#nav-sidebar-apps")
    expect(links).to_be_visible()

    page.get_by_text("dock_to_right").first.click()
    expect(links).to_be_hidden()

    admin.open("/admin/relay/attempt/")
    expect(links).to_be_hidden()


def test_the_scheme_is_chosen_in_the_menu_and_kept(admin: AdminClient) -> None:
    page = admin.enter(employ(), "/admin/users/user/")

    page.locator('[x-on\\:click="openUserLinks = !openUserLinks"]').click()
    page.locator("[x-on\\:click=\"switchTheme('dark')\"]").click()
    admin.open("/admin/relay/attempt/")

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
