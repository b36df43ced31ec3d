"""Templates of the theme that we replace are still the ones that we replaced, and its classes are there."""

import hashlib
import re
from pathlib import Path

import pytest
import unfold
from django.conf import settings

# After an upgrade of the theme: compare the original with ours under templates/, then put its new sum here.
_ORIGINALS = {
    "unfold/layouts/skeleton.html": "66af9f0bb45f98ba",
    "unfold/helpers/app_list.html": "6ab83ac498b2f50f",
    "unfold/helpers/search.html": "91996c27181d14ad",
    "unfold/helpers/welcomemsg.html": "e8eab02522ba2319",
    "unfold/helpers/empty_results.html": "5f4727a37a99da76",
    "unfold/helpers/header_title.html": "b126ed2ab9ca1680",
    "unfold/helpers/edit_inline/tabular_heading.html": "eef46d03bc1655ad",
    "unfold/layouts/unauthenticated.html": "768501529f1a8dae",
    "admin/filter.html": "0c4cab2e0096ba77",
    "admin/base.html": "2ce9250b3c649e3a",
    "admin/login.html": "13deb7765ce36659",
    "registration/logged_out.html": "cad8c8cf769b9e91",
    "registration/password_change_done.html": "7e5d9fc5473b0b67",
    "registration/password_change_form.html": "1f9348f747225330",
}

# Where staff look; the theme's stylesheet is compiled and has only the classes that the theme itself uses.
_PAGES = (
    "admin",
    "backoffice",
    "checkin",
    "earnings",
    "payments",
    "registration",
    "relay",
    "rewards",
    "unfold",
)
# Classes that name something and change nothing.
_MARKS = {"person", "books", "submit-row", "group/button", "result-list", "action-toggle"}


@pytest.mark.parametrize("name", _ORIGINALS)
def test_the_template_of_unfold_that_we_replace_has_not_changed(name: str) -> None:
    original = Path(unfold.__file__).parent / "templates" / name

    assert hashlib.sha256(original.read_bytes()).hexdigest()[:16] == _ORIGINALS[name]


def test_every_class_of_our_pages_has_a_rule() -> None:
    own, ours = Path(unfold.__file__).parent, Path(settings.BASE_DIR)
    sheets = [own / "static/unfold/css/styles.css", *(ours / "gateway/admin/static/staff").glob("*.css")]
    rules = {
        re.sub(r"\\(.)", r"\1", name)
        for sheet in sheets
        for name in re.findall(r"\.((?:[\w-]|\\.)+)", sheet.read_text())
    }
    pages = [page for folder in _PAGES for page in (ours / "templates" / folder).rglob("*.html")]
    used = {
        name
        for page in pages
        for names in re.findall(r'class="([^"{}%]*)"', page.read_text())
        for name in names.split()
    }
    assert len(used) > 100
    assert used - rules == _MARKS
