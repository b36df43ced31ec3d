"""
The operator's name, logo, colours and links on the pages for people, and the language of a page.

Every folder of `portal/locale` is a language that readers can choose; English needs none.
"""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language_info, get_supported_language_variant
from django.utils.translation.trans_real import parse_accept_lang_header

# The lowest contrast of readable text of normal size (WCAG 2.2, level AA).
READABLE = 4.5
_HEX = re.compile(r"#[0-9a-f]{6}")
# The background colours in portal.css, of cards and behind them, on which the brand colour is used for text.
GROUNDS_LIGHT, GROUNDS_DARK = ("#ffffff", "#fafbfb"), ("#1a2423", "#101716")
_TINT_PERCENT = 9


def readable_colour(text: str, *, grounds: tuple[str, ...]) -> str:
    """
    Return a colour such as `#0f6f68` in lower case.

    Raises:
        ValueError: the text is not a colour, or text in this colour is unreadable on one of the backgrounds.
    """
    colour = text.lower()
    if not _HEX.fullmatch(colour):
        raise ValueError("must be a colour such as #0f6f68.")
    if any(contrast(colour, ground) < READABLE for ground in tinted_grounds(colour, grounds)):
        raise ValueError(
            f"is too close to the page's background: text needs a contrast of {READABLE} to 1 (WCAG 2.2, AA)."
        )
    return colour


def tinted_grounds(colour: str, grounds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the backgrounds, and the tinted one of notices."""
    return (*grounds, _tinted(colour, grounds[0]))


def _tinted(colour: str, ground: str) -> str:
    pairs = zip(_channels(colour), _channels(ground), strict=True)
    return "#" + "".join(
        f"{round((own * _TINT_PERCENT + below * (100 - _TINT_PERCENT)) / 100):02x}" for own, below in pairs
    )


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour[1:]))


def _luminance(colour: str) -> float:
    parts = (channel / 255 for channel in _channels(colour))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@dataclass(frozen=True, kw_only=True)
class Brand:
    """The operator's name, logo, style and links, as pages show them."""

    name: str
    logo: str
    style: SafeString
    support: str
    terms: str
    privacy: str
    imprint: str
    order_button: str

    @classmethod
    def of_settings(cls) -> Self:
        """Return the brand of the settings, which have already validated the colours."""
        return cls(
            name=settings.BRAND_NAME,
            logo="/logo" if settings.BRAND_LOGO_FILE else static("staff/favicon.svg"),
            style=_style(),
            support=_link(settings.BRAND_SUPPORT),
            terms=settings.BRAND_TERMS_URL,
            privacy=settings.BRAND_PRIVACY_URL,
            imprint=settings.BRAND_IMPRINT_URL,
            order_button=settings.BRAND_ORDER_BUTTON,
        )


def _link(support: str) -> str:
    return f"mailto:{support}" if "@" in support and "/" not in support else support


def _style() -> SafeString:
    light = _colours(settings.BRAND_COLOR, "#ffffff", GROUNDS_LIGHT[0])
    dark = _colours(settings.BRAND_COLOR_DARK, GROUNDS_DARK[1], GROUNDS_DARK[0])
    rules = f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return mark_safe(rules)  # noqa: S308 - colours of the form #rrggbb


def _colours(colour: str, on: str, ground: str) -> str:
    return f"--accent:{colour};--on-accent:{on};--bar:{colour};--soft:{_tinted(colour, ground)}"


def context(request: HttpRequest, **own: Any) -> dict[str, Any]:
    """Return the variables of `portal/base.html`; `own` are those of the page itself."""
    return {"brand": Brand.of_settings(), "language": language_of(request), "languages": languages(), **own}


@cache
def languages() -> tuple[tuple[str, str], ...]:
    """Return the code and the native name of each language of the pages."""
    return tuple((code, get_language_info(code)["name_local"].capitalize()) for code, _ in settings.LANGUAGES)


def language_of(request: HttpRequest) -> str:
    """Return the language that the reader has chosen, or the first of the browser's languages that pages have."""
    chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    wanted = [
        chosen,
        *(code for code, _ in parse_accept_lang_header(request.META.get("HTTP_ACCEPT_LANGUAGE", ""))),
    ]
    for code in filter(None, wanted):
        try:
            return get_supported_language_variant(code)
        except LookupError:
            continue
    return settings.LANGUAGE_CODE
