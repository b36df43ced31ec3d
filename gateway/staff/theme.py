"""
The look of the admin: name, marks, colours, and which environment one is in.

Settings read it before any app is ready, so nothing here touches a model.
"""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static

NAME = "Credit relay gateway"
_MAINNET, _TESTNET = 42, 4201


def environment(_: HttpRequest) -> list[str]:
    """Return the badge beside the page's title: a name, and red where real money moves."""
    by_chain = {_MAINNET: ["LUKSO mainnet", "danger"], _TESTNET: ["LUKSO testnet", "warning"]}
    name, colour = by_chain.get(settings.CHAIN_ID, [f"chain {settings.CHAIN_ID}", "info"])
    return [settings.STAFF_ENVIRONMENT or name, colour]


def title_prefix(request: HttpRequest) -> str:
    """Return what a browser's tab says first, so that two environments are not mistaken for one another."""
    return f"[{environment(request)[0]}]"


def _asset(name: str) -> Any:
    return lambda _request: static(f"staff/{name}")


# Steps of one hue each. Text of weight 600 on white, and white on 600, has a contrast above 5.
_PRIMARY = {
    "50": "oklch(98.2% .016 181)",
    "100": "oklch(95.0% .044 181)",
    "200": "oklch(90.4% .085 181)",
    "300": "oklch(84.5% .118 182)",
    "400": "oklch(76.0% .125 183)",
    "500": "oklch(66.5% .115 185)",
    "600": "oklch(51.0% .092 187)",
    "700": "oklch(44.5% .079 189)",
    "800": "oklch(38.5% .066 191)",
    "900": "oklch(33.0% .054 193)",
    "950": "oklch(25.0% .042 195)",
}
_BASE = {
    "50": "oklch(98.4% .003 220)",
    "100": "oklch(96.6% .005 220)",
    "200": "oklch(92.6% .008 222)",
    "300": "oklch(86.8% .012 224)",
    "400": "oklch(70.2% .020 226)",
    "500": "oklch(54.6% .024 228)",
    "600": "oklch(44.2% .025 230)",
    "700": "oklch(36.8% .025 232)",
    "800": "oklch(27.6% .022 234)",
    "900": "oklch(20.8% .019 236)",
    "950": "oklch(14.0% .015 238)",
}

THEME: dict[str, Any] = {
    "SITE_TITLE": NAME,
    "SITE_HEADER": NAME,
    "SITE_URL": None,
    "SITE_LOGO": {"light": _asset("logo-light.svg"), "dark": _asset("logo-dark.svg")},
    "SITE_ICON": {"light": _asset("mark-light.svg"), "dark": _asset("mark-dark.svg")},
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": _asset("favicon.svg")}],
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "ENVIRONMENT": environment,
    "ENVIRONMENT_TITLE_PREFIX": title_prefix,
    "STYLES": [_asset("staff.css")],
    "COLORS": {"base": _BASE, "primary": _PRIMARY},
    "BORDER_RADIUS": "6px",
    "SIDEBAR": {
        "show_search": True,
        "command_search": False,
        "navigation": "gateway.staff.navigation.navigation",
    },
}
