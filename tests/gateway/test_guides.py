"""The guides on the service: each is a page, and every link and picture in it leads somewhere."""

import re

import pytest
from django.test import Client

from tests.docs.pages import DOCS

pytestmark = pytest.mark.django_db
NAMES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix() for path in [*DOCS.glob("*.md"), *DOCS.glob("adr/*.md")]
)


def test_the_list_names_every_guide(client: Client) -> None:
    page = client.get("/docs").content.decode()

    assert {f"/docs/{path.stem}" for path in DOCS.glob("*.md")} <= set(re.findall('href="([^"]+)"', page))


def test_links_and_pictures_of_guides_lead_to_pages_of_the_service(client: Client) -> None:
    seen = {}
    for name in NAMES:
        response = client.get(f"/docs/{name}")
        assert response.status_code == 200, name
        [article] = re.findall("<article.*</article>", response.content.decode(), re.DOTALL)
        for target in re.findall(r'(?:href|src)="([^"#:]+)[^":]*"', article):
            address = target if target.startswith("/") else str((DOCS / name).parent.joinpath(target))
            seen[address.replace(str(DOCS), "/docs")] = name
    broken = {
        address: name
        for address, name in seen.items()
        if client.get(re.sub(r"/[\w-]+/\.\./", "/", address)).status_code != 200
    }

    assert len(seen) > 50
    assert broken == {}


@pytest.mark.parametrize(
    "path",
    [
        "/docs/nothing",
        "/docs/pictures/nothing.png",
        "/docs/../manage.py",
        "/docs/alerts",
        "/docs/%2e%2e/manage.py",
    ],
)
def test_an_unknown_guide_is_404(client: Client, path: str) -> None:
    assert client.get(path).status_code == 404
