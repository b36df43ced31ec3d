"""The page's words in a language, by their English text, so that one story is told in each."""

from dataclasses import dataclass
from functools import cache

from babel.messages.catalog import Catalog

from devstack.translations import catalogue_of


@dataclass(frozen=True)
class Words:
    """Translates as the page does; `Words("de")("Sign out")` is what its button says in German."""

    language: str

    def __call__(self, text: str, **values: object) -> str:
        """Return the text in the language, with its values."""
        message = None if self.language == "en" else _catalogue(self.language).get(text)
        shown = str(message.string) if message else text
        for name, value in values.items():
            shown = shown.replace(f"{{{name}}}", str(value))
        return shown

    def number(self, value: int) -> str:
        return f"{value:,}" if self.language == "en" else f"{value:,}".replace(",", ".")

    def dollars(self, minor: int) -> str:
        """Return an amount below 1,000 as the page shows money."""
        shown = f"{minor / 100:.2f}"
        return f"${shown}" if self.language == "en" else f"{shown.replace('.', ',')} $"


@cache
def _catalogue(language: str) -> Catalog:
    return catalogue_of(language)
