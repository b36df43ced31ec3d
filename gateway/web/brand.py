"""
The operator's name, logo, colours and links on the pages for people, and the language of a page.

Every folder of `portal/locale` is a language that readers can choose; English needs none.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language_info, get_supported_language_variant
from django.utils.translation.trans_real import parse_accept_lang_header

from gateway.common.contrast import mixed

# The grounds of portal.css on which the colour is a text or lies under one: of cards, and behind them.
GROUNDS_LIGHT, GROUNDS_DARK = ("#ffffff", "#fafbfb"), ("#1a2423", "#101716")
_TINT_PERCENT = 9


def tinted_grounds(colour: str, grounds: tuple[str, ...]) -> tuple[str, ...]:
    """Return the grounds, and the tinted one of notices."""
    return (*grounds, mixed(colour, grounds[0], percent=_TINT_PERCENT))


@dataclass(frozen=True, kw_only=True)
class Brand:
    """What a page shows of its operator."""

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
        """Return the brand of the settings, which have checked the colours."""
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
    tint = mixed(colour, ground, percent=_TINT_PERCENT)
    return f"--accent:{colour};--on-accent:{on};--bar:{colour};--soft:{tint}"


def context(request: HttpRequest, **own: Any) -> dict[str, Any]:
    """Return the variables of `portal/base.html`; `own` are those of the page itself."""
    return {"brand": Brand.of_settings(), "language": language_of(request), "languages": languages(), **own}


@cache
def languages() -> tuple[tuple[str, str], ...]:
    """Return code and own name of each language that pages can have."""
    return tuple((code, get_language_info(code)["name_local"].capitalize()) for code, _ in settings.LANGUAGES)


def language_of(request: HttpRequest) -> str:
    """Return the language that the reader has chosen, or the first one that the browser prefers and pages have."""
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
