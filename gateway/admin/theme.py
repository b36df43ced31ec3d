"""
The admin's theme: its name, icons and environment badge; colours are in `staff.css`.

The settings import this before any app is ready, so it must not import models.
"""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy

from gateway.chain.config import home

NAME = "Credit relay gateway"
_MAINNET, _TESTNET = 42, 4201


def environment(_: HttpRequest) -> list[str]:
    """Return the environment badge: its text and colour, red for mainnet."""
    by_chain = {_MAINNET: ["LUKSO mainnet", "danger"], _TESTNET: ["LUKSO testnet", "warning"]}
    chain_id = home().id
    name, colour = by_chain.get(chain_id, [f"chain {chain_id}", "info"])
    return [settings.STAFF_ENVIRONMENT or name, colour]


def title_prefix(request: HttpRequest) -> str:
    """Return the prefix of page titles, so that environments can be told apart."""
    return f"[{environment(request)[0]}]"


def _asset(name: str) -> Any:
    return lambda _request: static(f"staff/{name}")


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
    "STYLES": [_asset("staff.css"), _asset("pages.css")],
    "ACCOUNT": {
        "navigation": [
            {"title": "Second factor", "link": reverse_lazy("admin:second_factor")},
            {"title": "Change password", "link": reverse_lazy("admin:password_change")},
        ]
    },
    "DASHBOARD_CALLBACK": "backoffice.front_page.fill",
    "SIDEBAR": {
        "show_search": True,
        "command_search": False,
        "navigation": "backoffice.sidebar.sidebar",
    },
}
