"""Templates of the theme that we replace are still the ones that we replaced."""

import hashlib
from pathlib import Path

import pytest
import unfold

# After an upgrade of the theme: compare the original with ours under templates/, then put its new sum here.
_ORIGINALS = {
    "unfold/layouts/skeleton.html": "66af9f0bb45f98ba",
    "unfold/helpers/search.html": "91996c27181d14ad",
    "unfold/helpers/welcomemsg.html": "e8eab02522ba2319",
    "unfold/helpers/empty_results.html": "5f4727a37a99da76",
    "unfold/helpers/header_title.html": "b126ed2ab9ca1680",
    "unfold/helpers/edit_inline/tabular_heading.html": "eef46d03bc1655ad",
    "unfold/layouts/unauthenticated.html": "768501529f1a8dae",
    "admin/base.html": "2ce9250b3c649e3a",
    "admin/login.html": "13deb7765ce36659",
}


@pytest.mark.parametrize("name", _ORIGINALS)
def test_the_original_has_not_changed(name: str) -> None:
    original = Path(unfold.__file__).parent / "templates" / name

    assert hashlib.sha256(original.read_bytes()).hexdigest()[:16] == _ORIGINALS[name]
