"""A member of staff at a browser window that records every error in it."""

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pyotp
from django.conf import settings
from django.contrib.auth.models import Group
from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request, Response, expect

from tests.factories import UserFactory
from tests.staff import session_of
from users.models import Phone, User

Scheme = Literal["light", "dark"]
# The browser drops what it is loading when the machine gets a network or loses one, as beside containers that start.
_NETWORK_CHANGED, _OPENINGS = "net::ERR_NETWORK_CHANGED", 10


@dataclass(frozen=True)
class Person:
    """A member of staff with what the login asks for."""

    user: User
    password: str
    device: Phone

    def one_time_password(self) -> str:
        """Return the number that the second factor shows now."""
        return pyotp.TOTP(self.device.shown_key).now()


def employ(*, is_superuser: bool = True) -> Person:
    """Add a member of staff with a password and a second factor."""
    password = secrets.token_urlsafe(16)
    user = UserFactory.create(profile_address=None, is_staff=True, is_superuser=is_superuser)
    user.set_password(password)
    user.save()
    return Person(user, password, Phone.objects.create(user=user, name="phone"))


def colleague(role: str) -> Person:
    """Employ a clerk in a role."""
    person = employ(is_superuser=False)
    person.user.groups.add(Group.objects.get(name=role))
    return person


def person_path(user: User) -> str:
    """Return the page of a person."""
    return f"/admin/users/user/{user.pk}/change/"


def look_up(page: Page, term: str) -> None:
    """Search for the text of a complaint, with the one box of the page that takes it."""
    page.get_by_role("searchbox", name="Search everywhere").fill(term)
    with leaving(page):
        page.keyboard.press("Enter")


def leaving(page: Page) -> AbstractContextManager[object]:
    """Wait at the end of the block until the page that it leads to is there, and nothing is loading."""
    return page.expect_navigation(wait_until="networkidle")


def follow(what: Locator) -> None:
    """Click what leads to another page, and wait until that is there."""
    with leaving(what.page):
        what.click()


def confirm(page: Page, button: str, *, reason: str, **answers: str) -> None:
    """Press an action's button, fill its page in and confirm."""
    begin(page, button, reason=reason, **answers)
    follow(page.locator("form[method=post]").get_by_role("button", name=button, exact=True))


def begin(page: Page, button: str, *, reason: str, **answers: str) -> None:
    """Press an action's button and fill its page in, so that only the last click is left."""
    follow(page.locator("[data-staff-actions]").get_by_role("link", name=button, exact=True))
    for name, result in answers.items():
        page.locator(f"[name={name}]").fill(result)
    page.locator("[name=reason]").fill(reason)


@dataclass
class AdminClient:
    """
    A browser window and its `complaints`.

    `complaints` holds errors and warnings of the console (a policy that was broken is one),
    exceptions in scripts, responses of 500 and above, and requests to any other host.
    """

    page: Page
    base_url: str
    pictures: Path | None = None
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        self.page.on("request", self._on_request)
        self.page.on("response", self._on_response)

    def open(self, path: str) -> Page:
        """Go to a path of the service and wait until nothing is loading."""
        for _ in range(_OPENINGS):
            before = len(self.complaints)
            try:
                self.page.goto(f"{self.base_url}{path}", wait_until="networkidle")
            except Error as error:
                if _NETWORK_CHANGED not in error.message:
                    raise
            else:
                if not any(_NETWORK_CHANGED in complaint for complaint in self.complaints[before:]):
                    break
            self.complaints[before:] = [
                text for text in self.complaints[before:] if _NETWORK_CHANGED not in text
            ]
        return self.page

    def enter(self, person: Person, path: str = "/admin/") -> Page:
        """Open a path as logged-in staff."""
        name, value = settings.SESSION_COOKIE_NAME, session_of(person.user)
        self.page.context.add_cookies([{"name": name, "value": value, "url": self.base_url}])
        return self.open(path)

    def log_in(self, person: Person, *, path: str = "/admin/") -> Page:
        """Log in with the password and the one-time password."""
        page = self.open(path)
        page.get_by_label("Username").fill(person.user.username)
        page.locator("#id_password").fill(person.password)
        page.get_by_label("One-time password").fill(person.one_time_password())
        follow(page.get_by_role("button", name="Log in"))
        expect(page.locator("#login-form")).to_have_count(0)
        return page

    def picture(self, name: str, *, whole: bool = True) -> None:
        """Wait for the fonts; keep what the window shows as `name`.png where pictures are wanted."""
        self.page.evaluate("document.fonts.ready.then(() => null)")
        if self.pictures:
            path = self.pictures / f"{name}.png"
            self.page.screenshot(path=path, full_page=whole, animations="disabled")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _on_request(self, request: Request) -> None:
        wanted = urlsplit(request.url)
        if wanted.scheme not in {"data", "blob"} and wanted.netloc != urlsplit(self.base_url).netloc:
            self.complaints.append(f"another host: {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status}: {response.url}")


AdminClientIn = Callable[[Scheme], AdminClient]
