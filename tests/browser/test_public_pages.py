"""
Pages that need no sign-in: axe-core finds nothing, nothing is cut on a phone, and the keyboard reaches every control.

They are the documentation, the pages of error codes, those of the API, those behind links in e-mails, and error pages.
The pages of the account, of sponsors and of staff have tests of their own.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, ViewportSize

from gateway.docs import catalogue
from gateway.guides import guides
from tests.browser.accessibility import violations
from tests.browser.admin_client import AdminClient, AdminClientIn, Scheme

PHONE = ViewportSize(width=390, height=844)
# A window of 1280 pixels at 200 %, and one at 400 %, the narrowest that WCAG asks for.
ZOOMED, NARROWEST = ViewportSize(width=640, height=450), ViewportSize(width=320, height=600)
PAGES = (
    *("/", "/docs", "/problems", "/notices/confirm/x", "/notices/stop/x", "/nowhere", "/docs/nowhere"),
    *("/docs/adr/0039-quotes", "/api/docs"),
)
# What a key press has to reach: a control that is shown, or a box that scrolls.
_CONTROLS = """
() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(
  (one) => one.tabIndex >= 0 && !one.disabled && one.checkVisibility({ visibilityProperty: true })
    && one.getClientRects().length).length
"""
# Numbers each element that has the focus for the first time; 0 for the page itself, and for what had it already.
_STEP = """
() => {
  const one = document.activeElement;
  if (!one || one === document.body || one.dataset.reached) return null;
  one.dataset.reached = "yes";
  const { outlineStyle, boxShadow } = getComputedStyle(one);
  return outlineStyle !== "none" || boxShadow !== "none" ? "" : one.outerHTML.slice(0, 100);
}
"""
_CUT = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


class View(NamedTuple):
    scheme: Scheme
    size: ViewportSize


VIEWS = {
    "in the dark on a phone": View("dark", PHONE),
    "by day at 200 %": View("light", ZOOMED),
}


def _open(admin: AdminClient, path: str) -> Page:
    page = admin.page
    page.goto(f"{admin.base_url}{path}", wait_until="networkidle")
    # An unknown path is meant to be one here.
    admin.complaints[:] = [complaint for complaint in admin.complaints if "404" not in complaint]
    return page


def _paths() -> Iterator[str]:
    yield from PAGES
    yield from (f"/docs/{guide.name}" for guide in guides())
    yield f"/problems/{catalogue()[0].code}"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("view", VIEWS)
def test_every_public_page_is_accessible_and_whole(admin_in: AdminClientIn, view: str) -> None:
    scheme, size = VIEWS[view]
    admin = admin_in(scheme)
    broken: dict[str, list[str]] = {}
    for path in _paths():
        admin.page.set_viewport_size(size)
        page = _open(admin, path)
        found, cut = violations(page), page.evaluate(_CUT)
        page.set_viewport_size(NARROWEST)
        cut_more = page.evaluate(_CUT)
        broken[path] = [*found, *(f"{pixels} pixels are cut" for pixels in (cut, cut_more) if pixels > 0)]
    assert [f"{path}: {fault}" for path, found in broken.items() for fault in found] == []


@pytest.mark.django_db(transaction=True)
def test_the_keyboard_alone_reaches_each_control_and_shows_where_it_is(admin: AdminClient) -> None:
    broken: dict[str, list[str]] = {}
    for path in (*PAGES, "/docs/wallets", f"/problems/{catalogue()[0].code}"):
        page = _open(admin, path)
        controls, reached, unseen = page.evaluate(_CONTROLS), 0, []
        for _ in range(controls + 5):
            page.keyboard.press("Tab")
            step = page.evaluate(_STEP)
            reached += step is not None
            unseen += [step] if step else []
        missing = [f"{controls - reached} of {controls} controls"] if reached < controls else []
        broken[path] = [*missing, *unseen]
    assert [f"{path}: {fault}" for path, found in broken.items() for fault in found] == []
