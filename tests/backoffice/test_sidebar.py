"""Each role sees few pages in the sidebar, those of its work, and all other lists one step away."""

import re

import pytest
from django.contrib import admin
from django.test import Client

from backoffice.roles import ROLES
from backoffice.sidebar import MOST_ENTRIES
from tests.staff import SUPERUSER, browser_of, member

pytestmark = pytest.mark.django_db


def _links(client: Client, path: str = "/admin/") -> list[str]:
    page = client.get(path).content.decode()
    return re.findall(
        r'<li><a href="([^"]+)"', page[page.index("nav-sidebar-apps") : page.index('id="main"')]
    )


@pytest.mark.parametrize("role", [*ROLES, SUPERUSER])
def test_each_entry_of_a_role_opens_and_there_are_at_most_fifteen(role: str) -> None:
    client = browser_of(member(role))

    links = _links(client)

    assert 10 < len(links) == len(set(links)) <= MOST_ENTRIES == 15
    assert {link: client.get(link).status_code for link in links} == dict.fromkeys(links, 200)
    assert "/admin/gateway_admin/approvalrequest/" in links


def test_people_with_several_roles_have_the_sidebar_of_superusers() -> None:
    person = member("support")
    person.groups.add(*member("finance").groups.all())

    assert _links(browser_of(person)) == _links(browser_of(member(SUPERUSER)))


def test_all_lists_of_the_admin_are_one_step_away() -> None:
    page = browser_of(member("support")).get("/admin/lists/").content.decode()

    content = page[page.index('id="content"') :]
    linked = re.findall(r'href="/admin/(\w+)/(\w+)/"', content)
    of_others = {"auth", "axes"}  # Their permissions belong to superusers.
    every = {(model._meta.app_label, str(model._meta.model_name)) for model in admin.site._registry}
    assert set(linked) == {names for names in every if names[0] not in of_others}
    assert len(linked) == len(set(linked))
