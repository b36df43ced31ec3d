"""
The guides of `docs/`, as pages of the service.

They are Markdown files of the release, so they describe the version that serves them. Links between them work here.
"""

import functools
import itertools
import re
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, re_path
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gateway.common.problems import only_methods
from gateway.web import brand

_FOLDER = settings.BASE_DIR / "docs"
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")
# HTML in a guide is shown as text.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
_NAMELESS = re.compile(r"<th[^>]*></th>")
_DAY = {"Cache-Control": "public, max-age=86400"}


class Guide(NamedTuple):
    name: str
    title: str
    body: SafeString


@functools.cache
def guide_of(name: str) -> Guide | None:
    """Return the guide with this path below `docs/`, or None."""
    file = _FOLDER / f"{name}.md"
    if not file.is_file():
        return None
    tokens = _MARKDOWN.parse(file.read_text(encoding="utf-8"))
    title = next(
        (tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"),
        name,
    )
    for token, inline in itertools.pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", _slug(inline.content))
        inline.children = inline.children and _without_ways_out(inline.children, file.parent)
    rendered: str = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {})
    # Code scrolls, so the keyboard has to reach it; a heading without text names nothing.
    rendered = _NAMELESS.sub("<td></td>", rendered.replace("<pre>", '<pre tabindex="0">'))
    return Guide(name, title, mark_safe(rendered))  # noqa: S308 - of our own files, whose HTML is escaped


def _slug(heading: str) -> str:
    """Return the anchor that GitHub generates for a heading."""
    return _NOT_IN_A_SLUG.sub("", heading.lower()).replace(" ", "-")


def _without_ways_out(tokens: list[Token], folder: Path) -> list[Token]:
    """Remove links to files of the repository outside `docs/` from the tokens."""
    kept, leads_out = [], False
    for token in tokens:
        if token.type == "link_open":
            target = str(token.attrGet("href")).partition("#")[0]
            leads_out = ":" not in target and not (folder / target).resolve().is_relative_to(_FOLDER)
        if not (leads_out and token.type in {"link_open", "link_close"}):
            kept.append(token)
    return kept


@functools.cache
def guides() -> tuple[Guide, ...]:
    """Return the guides that are not in a folder, by title."""
    found = (guide_of(path.stem) for path in _FOLDER.glob("*.md"))
    return tuple(sorted((guide for guide in found if guide), key=lambda guide: guide.title))


@only_methods("GET", "HEAD")
def index(request: HttpRequest) -> HttpResponse:
    """Return the list of guides."""
    return render(request, "guides/index.html", brand.context(request, guides=guides()))


@only_methods("GET", "HEAD")
def page(request: HttpRequest, name: str) -> HttpResponse:
    """Return a guide."""
    guide = guide_of(name)
    if guide is None:
        raise Http404
    return render(request, "guides/page.html", brand.context(request, guide=guide))


@only_methods("GET", "HEAD")
def attachment(request: HttpRequest, name: str) -> HttpResponse:
    """Return a picture or an example of a guide."""
    file = (_FOLDER / name).resolve()
    if not (file.is_file() and file.is_relative_to(_FOLDER)):
        raise Http404
    kind = _PICTURES.get(file.suffix, "text/plain; charset=utf-8")
    return HttpResponse(file.read_bytes(), content_type=kind, headers=_DAY)


urlpatterns: list[URLPattern] = [
    re_path(r"^docs/?$", index),
    re_path(r"^docs/(?P<name>[\w./-]+\.(?!md$)\w+)$", attachment),
    re_path(r"^docs/(?P<name>(?:adr/)?[A-Za-z0-9-]+)(?:\.md)?$", page),
]
