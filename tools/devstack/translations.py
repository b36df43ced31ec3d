"""
`python -m devstack translations`: the catalogues of the pages for people.

It collects the texts of the page's scripts and templates into `portal/locale/*/LC_MESSAGES/django.po`, and compiles
each into what Django reads: `django.mo` for templates, and `djangojs.mo` for scripts, which browsers get. With a
language (`translations fr`) it begins a catalogue. Translators fill in the .po files; another language needs nothing
else.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

from devstack.files import PROJECT

LOCALES = PROJECT / "portal/locale"
_SCRIPTS = sorted((PROJECT / "portal/static/portal").glob("*.js"))
_TEMPLATES = [PROJECT / "templates/portal", PROJECT / "templates/guides"]
# `t(text)` and `tn(one, other, count)` of text.js, and what templates become.
_OF_SCRIPTS: Mapping[str, tuple[int, ...] | None] = {"t": None, "tn": (1, 2)}
_OF_TEMPLATES: Mapping[str, tuple[int, ...] | None] = {"gettext": None, "_": None, "ngettext": (1, 2)}


class Text(NamedTuple):
    """A text to translate, with its plural or without one, and the file that shows it."""

    one: str
    other: str
    file: str


def texts() -> list[Text]:
    """Return every text of the pages once, in the order of files and lines."""
    return list({(text.one, text.other): text for text in [*_of_templates(), *_of_scripts()]}.values())


def _of_scripts() -> Iterator[Text]:
    for script in _SCRIPTS:
        if script.name != "relay-client.js":
            yield from _extracted("javascript", script.read_bytes(), script, _OF_SCRIPTS)


def _of_templates() -> Iterator[Text]:
    if not settings.configured:
        settings.configure()
    files = (path for folder in _TEMPLATES for kind in ("*.html", "*.txt") for path in folder.glob(kind))
    for template in sorted(files):
        program = templatize(template.read_text(encoding="utf-8"))
        yield from _extracted("python", program.encode(), template, _OF_TEMPLATES)


def _extracted(
    method: str, content: bytes, file: Path, keywords: Mapping[str, tuple[int, ...] | None]
) -> Iterator[Text]:
    for _, message, _, _ in extract(
        method, io.BytesIO(content), keywords=keywords, options={"parse_template_string": True}
    ):
        one, other = message if isinstance(message, tuple) else (message, "")
        yield Text(one, other, file.relative_to(PROJECT).as_posix())


def catalogue_of(language: str) -> Catalog:
    """Return the catalogue of a language as it is in its file, empty where there is none."""
    path = _po_of(language)
    if not path.exists():
        return Catalog(locale=language, domain="django", project="credit-relay-gateway", charset="utf-8")
    with path.open("rb") as file:
        return read_po(file, locale=language, domain="django")


def languages() -> list[str]:
    """Return the languages that have a catalogue."""
    return sorted(folder.name for folder in LOCALES.glob("*") if folder.is_dir())


def update(*beginning: str) -> None:
    """Bring the texts of each catalogue up to date, and compile it."""
    template = Catalog(domain="django", charset="utf-8")
    for text in texts():
        template.add((text.one, text.other) if text.other else text.one, locations=[(text.file, 0)])
    for language in sorted({*languages(), *beginning}):
        catalogue = catalogue_of(language)
        catalogue.update(template, no_fuzzy_matching=True, update_creation_date=False)
        catalogue.obsolete.clear()
        catalogue.header_comment, catalogue.fuzzy = "# Words of the pages for people.", False
        _po_of(language).parent.mkdir(parents=True, exist_ok=True)
        with _po_of(language).open("wb") as file:
            write_po(file, catalogue, width=120, include_lineno=False, omit_header=False, sort_output=False)
        for path, content in compiled(language).items():
            path.write_bytes(content)


def compiled(language: str) -> dict[Path, bytes]:
    """Return the files that Django reads, made from the catalogue of a language."""
    folder = _po_of(language).parent
    return {
        folder / "django.mo": _compiled(catalogue_of(language)),
        folder / "djangojs.mo": _compiled(catalogue_of(language), folder="portal/static/"),
    }


def _compiled(catalogue: Catalog, *, folder: str = "") -> bytes:
    """Return the texts of files in a folder as Django reads them."""
    for message in list(catalogue):
        if message.id and not any(name.startswith(folder) for name, _ in message.locations):
            catalogue.delete(message.id)
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()


def _po_of(language: str) -> Path:
    return LOCALES / language / "LC_MESSAGES" / "django.po"
