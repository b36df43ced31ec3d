"""The pictures of the documents are of today's pages, and each is shown somewhere."""

from lab.pictures import DIGEST, FOLDER, pages_digest
from tests.docs.pages import PAGES

_COMMAND = "python -m lab pictures"


def test_the_pictures_are_as_old_as_the_pages() -> None:
    taken = DIGEST.read_text(encoding="utf-8").strip()
    assert taken == pages_digest(), f"pages have changed since the pictures were taken: run `{_COMMAND}`"


def test_each_picture_is_shown_in_a_document() -> None:
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = [path.name for path in FOLDER.iterdir() if path != DIGEST]
    assert len(shown) > 10
    assert [name for name in shown if f"pictures/{name}" not in texts] == []
