"""
Who of the staff may open which page of the admin, and do what: the whole table, written out.

A letter is a role: s support, f finance, o operations, S superuser. Staff without a role
have nothing; visitors are asked to sign in.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.handlers.base import BaseHandler
from django.core.handlers.wsgi import WSGIRequest
from django.test import Client, RequestFactory, override_settings
from django.urls import URLResolver, get_resolver, reverse
from pytest_django import DjangoDbBlocker

from gateway.admin.actions import ReasonedActions
from tests.database import rows_of_a_module
from tests.factories import UserFactory, make
from tests.staff import address_of, browser_of, everything, member

pytestmark = pytest.mark.django_db
ALL = "sfoS"
ROLES = {"s": "support", "f": "finance", "o": "operations", "S": "superuser"}


class Row(NamedTuple):
    """Whose letters open the list, a row and its history; add, change or delete; and do each action."""

    view: str
    add: str = ""
    change: str = ""
    delete: str = ""
    actions: dict[str, str] = {}
    # Django's own kind, of the list: done at once, without a reason.
    plain: dict[str, str] = {}
    export: str = ""
    # Pages of its own about a row.
    pages: dict[str, str] = {}


MATRIX = {
    "users.User": Row(
        ALL, add="oS", change="S",
        actions={
            "adjust_credits": "sS", "grant_modifier": "sS", "revoke_sessions": "sS", "reset_password": "oS",
            "reset_second_factor": "oS", "lock_out": "oS", "make_link": "oS", "ban": "sS", "lift_ban": "sS",
        },
        pages={"note": "sfS"},
    ),
    "users.AccountDeletion": Row(ALL),
    "users.SignInSession": Row(ALL, actions={"revoke": "sS"}),
    "gateway_admin.StaffAction": Row(ALL),
    "gateway_admin.Pause": Row(
        ALL,
        actions={
            "pause_relay": "oS", "resume_relay": "oS", "pause_check_ins": "oS", "resume_check_ins": "oS",
        },
    ),
    "credits.CreditAccount": Row(ALL, actions={"adjust_credits": "sS", "grant_modifier": "sS"}, export="fS"),
    "credits.CreditEntry": Row(ALL, export="fS"),
    "sponsors.Sponsor": Row(
        ALL, add="fS", pages={"simulate": ALL},
        actions={
            "fund_sponsor": "sS", "put_member": "fS", "set_alarm": "fS", "freeze": "foS", "thaw": "foS",
            "make_default": "fS", "end_default": "fS", "set_budget": "fS",
        },
    ),
    "sponsors.Member": Row(ALL, actions={"remove_member": "fS"}),
    "sponsors.ApiKey": Row(ALL, actions={"revoke_key": "foS"}),
    "sponsors.RefusalCount": Row(ALL),
    "sponsors.Policy": Row(ALL, add="fS", actions={"switch_off": "foS", "switch_on": "foS"}),
    "sponsors.PolicyVersion": Row(ALL, add="fS"),
    "sponsors.VoucherSigner": Row(ALL, add="fS", actions={"remove_signer": "foS"}),
    "sponsors.Verifier": Row(ALL, add="fS", actions={"create_secret": "fS", "remove_verifier": "foS"}),
    "sponsors.SponsoredCall": Row(ALL),
    "sponsors.Usage": Row(ALL),
    "credits.ExpiryRule": Row(ALL, add="fS"),
    "credits.ExpiringLot": Row(ALL),
    "credits.CreditHold": Row(ALL, actions={"release_orphaned_hold": "oS"}),
    "gateway_admin.ApprovalRequest": Row(ALL, actions={"approve": "foS", "reject": "foS"}),
    "credits.Allowance": Row(ALL),
    "earnings.AdNetwork": Row(
        ALL, add="oS", change="oS",
        actions={
            "pause": "oS", "resume": "oS", "set_secret": "oS", "issue_address": "oS", "retire_secret": "oS",
        },
        pages={"try": "oS"},
    ),
    "earnings.Postback": Row(
        ALL,
        actions={
            "release_early": "fS", "release_beyond_cap": "fS", "forfeit": "fS", "assign": "fS", "close": "fS",
        },
    ),
    "earnings.NetworkUser": Row(ALL),
    "webhooks.Endpoint": Row(
        ALL, add="oS", change="oS",
        actions={
            "enable": "oS", "disable": "oS", "rotate_secret": "oS", "retire_secret": "oS", "send_test": "oS",
            "resend_given_up": "soS",
        },
    ),
    "webhooks.Message": Row(ALL, actions={"resend": "soS"}),
    "webhooks.Notice": Row(ALL),
    "relay.RelayTransaction": Row(
        ALL, actions={"give_back": "sS", "broadcast_again": "oS", "cancel_unsent": "oS"}, export="fS"
    ),
    "relay.Attempt": Row(ALL, export="fS"),
    "relay.Relayer": Row(
        ALL,
        actions={"pause": "oS", "resume": "oS", "add": "oS", "retire": "oS", "bring_back": "oS"},
    ),
    "relay.TopUp": Row(ALL),
    "relay.Loss": Row(ALL),
    "relay.ProfileCreation": Row(ALL),
    "users.TrustedImplementation": Row(
        ALL, add="oS", change="oS", actions={"distrust": "oS"}
    ),
    "payments.Customer": Row(ALL),
    "payments.Subscription": Row(ALL, actions={"cancel": "sS"}),
    "payments.Refund": Row(ALL, actions={"send": "sS"}, export="fS"),
    "payments.Payout": Row(ALL, export="fS", pages={"refund": "sS"}),
    "payments.Clawback": Row(ALL, export="fS"),
    "payments.BillingOperation": Row(ALL),
    "payments.StripeEvent": Row(ALL, actions={"process_again": "sS", "dismiss": "fS"}),
    "payments.PayoutRate": Row(ALL, add="fS"),
    "relay.CreditPrice": Row(ALL, add="fS"),
    "accounting.Month": Row(
        ALL, actions={"prepare": "fS", "prepare_again": "fS", "close": "fS"}, pages={"xlsx": "fS", "csv": "fS"}
    ),
    "accounting.CoinRate": Row(ALL, add="fS", change="fS", actions={"import": "fS"}),
    "credits.UnbackedCeiling": Row(ALL, add="fS"),
    "credits.UnbackedDay": Row(ALL),
    "payments.CreditPack": Row(ALL, add="fS", change="fS"),
    "payments.Purchase": Row(ALL, export="fS"),
    "payments.AutoTopUp": Row(ALL),
    "rewards.Progress": Row(ALL),
    "rewards.ExperienceEntry": Row(ALL),
    "rewards.CashbackEntry": Row(ALL),
    "rewards.Modifier": Row(ALL, actions={"end": "sS"}),
    "rewards.Badge": Row(ALL, add="fS", change="fS", actions={"remove": "fS"}),
    "credits.ReconciliationRun": Row(ALL, actions={"run": "fS"}),
    "checkin.CheckIn": Row(ALL),
    "checkin.DailySeed": Row(ALL),
    # A draft is changed and deleted by its author alone, which none of these is.
    "checkin.DropTable": Row(ALL, add="fS", actions={"publish": "fS"}, plain={"copy_as_draft": "fS"}),
    "auth.Group": Row("S"),
    "users.Phone": Row(ALL),
    "axes.AccessAttempt": Row("S"),
    "axes.AccessFailureLog": Row("S"),
    "axes.AccessLog": Row("S"),
}  # fmt: skip

MONEY = [
    "credits.CreditAccount", "credits.CreditEntry", "credits.CreditHold", "credits.ExpiringLot",
    "sponsors.SponsoredCall", "sponsors.Usage",
    "gateway_admin.ApprovalRequest",
    "credits.Allowance", "rewards.Progress", "rewards.ExperienceEntry", "rewards.CashbackEntry", "earnings.Postback",
    "relay.RelayTransaction", "relay.Attempt", "relay.Loss",
    "payments.Customer", "payments.Subscription", "payments.Payout", "payments.Clawback", "payments.Refund",
    "payments.Purchase", "payments.AutoTopUp",
    "payments.BillingOperation", "payments.StripeEvent", "accounting.Month", "checkin.CheckIn", "checkin.DailySeed",
    "gateway_admin.StaffAction",
]  # fmt: skip
_USUAL = {"changelist", "add", "change", "delete", "history"}


class Place(NamedTuple):
    """
    A page of the site: who gets which response to GET, and what the others get; a login step never leads to login.
    """

    open_to: Collection[str]
    answers: int = 200
    refuses: int = 403
    args: tuple[Any, ...] = ()
    query: str = ""
    is_login_step: bool = False


# Staff who have shown a second factor, with or without a role.
EVERYBODY = {*ALL, "without a role"}
SITE = {
    "index": Place(EVERYBODY),
    "search": Place(EVERYBODY, query="?q=0x"),
    "lists": Place(EVERYBODY),
    "books": Place(ALL),
    "app_list": Place(ALL, refuses=404, args=("credits",)),
    "autocomplete": Place(ALL, query="?term=0x&app_label=credits&model_name=creditaccount&field_name=user"),
    "jsi18n": Place(EVERYBODY),
    "second_factor": Place(EVERYBODY),
    # Only staff without a second factor set up a phone, after the password; others are sent to log in.
    "enrol": Place((), refuses=302, is_login_step=True),
    # The link of an open invitation is enough; this one has none.
    "invitation": Place((), refuses=404, args=("unknown",), is_login_step=True),
    "password_change": Place(EVERYBODY),
    "password_change_done": Place(EVERYBODY),
    # No row of ours has a page outside of the admin.
    "view_on_site": Place(EVERYBODY, answers=404, args=(1, 1)),
    # Staff who are logged in are redirected to the front page; only they can log out, and not by a link.
    "login": Place({"anonymous"}, refuses=302, is_login_step=True),
    "logout": Place(EVERYBODY, answers=405, refuses=302, is_login_step=True),
}


def page(label: str, name: str, *args: Any) -> str:
    return reverse(f"admin:{label.replace('.', '_').lower()}_{name}", args=args)


def row_of(label: str) -> Any:
    """Return a row of the table; of badges the highest, since the lowest stays."""
    if label == "rewards.Badge":
        return apps.get_model(label)._default_manager.latest("exp_lower_bound")
    return make(apps.get_model(label))


def admin_of(label: str) -> Any:
    return admin.site._registry[apps.get_model(label)]


@pytest.fixture(autouse=True)
def _refusals_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Keep Django from logging a refusal with its trace, which takes as long as the refusal."""
    caplog.set_level("ERROR", "django.request")


class Asker(RequestFactory):
    """
    Requests pages as one member of staff; the first request passes all middleware.

    Later requests reuse the user and session of the first one, and skip the middleware that would load them again.
    """

    def __init__(self, browser: Client, handler: BaseHandler) -> None:
        super().__init__()
        self._handler, self._accepted = handler, browser.get("/admin/").wsgi_request

    def request(self, **request: Any) -> Any:
        asked = WSGIRequest(self._base_environ(**request))  # type: ignore[attr-defined]
        asked.user, asked.session = self._accepted.user, self._accepted.session
        asked._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
        return self._handler.get_response(asked)


@pytest.fixture(scope="module")
def browsers(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[dict[str, Client]]:
    """A browser of each role, of staff without a role, and of a visitor."""
    with django_db_blocker.unblock(), rows_of_a_module():
        people = {letter: member(role) for letter, role in ROLES.items()}
        people["without a role"] = UserFactory.create(profile_address=None, is_staff=True)
        yield {**{who: browser_of(person) for who, person in people.items()}, "anonymous": Client()}


@pytest.fixture(scope="module")
def askers(browsers: dict[str, Client], django_db_blocker: DjangoDbBlocker) -> Mapping[str, Asker]:
    """The same people, for the pages of rows, which are many."""
    handler = BaseHandler()
    with django_db_blocker.unblock():
        with override_settings(MIDDLEWARE=["django.contrib.messages.middleware.MessageMiddleware"]):
            handler.load_middleware()
        return {who: Asker(browser, handler) for who, browser in browsers.items()}


def assert_open_to(
    letters: str, url: str, askers: Mapping[str, Asker], *, post: bool = False, shows: str = ""
) -> dict[str, str]:
    """
    The page serves those and shows the text; others are refused, and a visitor is asked to sign in.

    Returns what each of those was shown.
    """
    pages = {}
    for who, browser in askers.items():
        if post:
            if who in letters:
                continue  # what they do is proved elsewhere
            response: Any = browser.post(url, {"post": "yes", "reason": "x", "token": uuid.uuid4()})
        else:
            response = browser.get(url)
        if who == "anonymous":
            assert (response.status_code, "/admin/login/" in response["Location"]) == (302, True), url
        else:
            assert response.status_code == (200 if who in letters else 403), f"{who} at {url}"
        if response.streaming:
            assert b"".join(response)
        elif response.status_code == 200:
            pages[who] = response.content.decode()
            assert shows in pages[who], f"{who} at {url}"
    return pages


def routes(resolver: URLResolver, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and route of every page below, as the resolver has them."""
    for pattern in resolver.url_patterns:
        route = f"{before}{pattern.pattern}"
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, route)
        else:
            yield pattern.name or "", route


def names_of(label: str) -> set[str]:
    """Return the names of the pages that the table wants of a model."""
    wanted = MATRIX[label]
    pages = _USUAL | ({"do"} if wanted.actions else set()) | ({"export"} if wanted.export else set())
    pages |= wanted.pages.keys()
    return {f"{label.replace('.', '_').lower()}_{name}" for name in pages}


def test_the_table_names_every_page_that_the_resolver_knows_and_every_action() -> None:
    [ours] = [
        pattern
        for pattern in get_resolver().url_patterns
        if isinstance(pattern, URLResolver) and "admin" in {pattern.namespace, pattern.app_name}
    ]
    names = list(routes(ours))
    named = {name for name, _ in names if name}
    assert named == set().union(SITE, *map(names_of, MATRIX))
    nameless = {route for name, route in names if not name}
    shortcuts = {f"{label.replace('.', '/').lower()}/<path:object_id>/" for label in MATRIX}
    assert nameless == {*shortcuts, "(?P<url>.*)$"}
    for model, model_admin in admin.site._registry.items():
        offered = {action.name for action in getattr(model_admin, "staff_actions", ())}
        assert offered == MATRIX[model._meta.label].actions.keys(), model


@pytest.mark.parametrize("name", SITE)
def test_a_page_of_the_site_is_open_to_its_roles_only(name: str, browsers: dict[str, Client]) -> None:
    place = SITE[name]
    url = reverse(f"admin:{name}", args=place.args) + place.query
    UserFactory.create()
    before = everything()
    for who, browser in browsers.items():
        response = browser.get(url)
        if who == "anonymous" and not place.is_login_step:
            assert (response.status_code, "/admin/login/" in response["Location"]) == (302, True), url
        else:
            assert response.status_code == (place.answers if who in place.open_to else place.refuses), who
    assert everything() == before


@pytest.mark.parametrize("path", ["", "/"])
def test_a_missing_page_is_404_and_redirects_only_anonymous_visitors(
    path: str, browsers: dict[str, Client]
) -> None:
    for who, browser in browsers.items():
        response = browser.get(f"/admin/nothing/here{path}")
        assert response.status_code == (302 if who == "anonymous" else 404), who


@pytest.mark.usefixtures("short_sidebar")
@pytest.mark.parametrize("label", MATRIX)
def test_a_page_is_open_to_its_roles_only(label: str, askers: Mapping[str, Asker]) -> None:
    wanted, row = MATRIX[label], row_of(label)
    before = everything()
    lists = assert_open_to(wanted.view, page(label, "changelist"), askers, shows=str(row.pk))
    rows = assert_open_to(wanted.view, page(label, "change", row.pk), askers)
    assert_open_to(wanted.view, page(label, "history", row.pk), askers)
    assert_open_to(wanted.add, page(label, "add"), askers)
    assert_open_to(wanted.delete, page(label, "delete", row.pk), askers)
    assert_open_to(wanted.add, page(label, "add"), askers, post=True)
    assert_open_to(wanted.change, page(label, "change", row.pk), askers, post=True)
    assert_open_to(wanted.delete, page(label, "delete", row.pk), askers, post=True)
    for name, letters in wanted.pages.items():
        assert_open_to(letters, page(label, name, row.pk), askers)
        assert_open_to(letters, page(label, name, row.pk), askers, post=True)
    if wanted.export:
        for kind in ("csv", "xlsx"):
            assert_open_to(wanted.export, page(label, "export", kind), askers)
    assert_the_page_named_nothing_leads_to_the_row(label, row, askers)
    for who, text in lists.items():
        assert_offers_the_actions_of(who, label, text)
    if label in MONEY:
        for text in [*lists.values(), *rows.values()]:
            assert "delete_selected" not in text
            assert 'name="_save"' not in text
    assert everything() == before


def assert_the_page_named_nothing_leads_to_the_row(label: str, row: Any, askers: Mapping[str, Asker]) -> None:
    """A row's address without `change/` leads to its page, which refuses whom it does not concern."""
    shown = page(label, "change", row.pk)
    for who, browser in askers.items():
        response: Any = browser.get(shown.removesuffix("change/"))
        wanted = "/admin/login/" if who == "anonymous" else shown
        assert (response.status_code, response["Location"].split("?")[0]) == (302, wanted), who


def assert_offers_the_actions_of(who: str, label: str, listed: str) -> None:
    """The list offers the role those actions of rows that the table gives it, and no other."""
    actions = getattr(admin_of(label), "staff_actions", ())
    of_rows = [action.name for action in actions if not action.subject]
    offered = {name for name in of_rows if f'<option value="{name}"' in listed}
    assert offered == {name for name in of_rows if who in MATRIX[label].actions[name]}, who


@pytest.mark.usefixtures("short_sidebar")
@pytest.mark.parametrize("label", [label for label, row in MATRIX.items() if row.actions])
def test_an_action_is_open_to_its_roles_only(label: str, askers: Mapping[str, Asker]) -> None:
    row, model = make(apps.get_model(label)), label.replace(".", "_").lower()
    model_admin = admin_of(label)
    assert isinstance(model_admin, ReasonedActions)
    before = everything()
    for action in model_admin.staff_actions:
        url = address_of(model, action.name, *([] if action.subject else [row]))
        assert_open_to(MATRIX[label].actions[action.name], url, askers)
        assert_open_to(MATRIX[label].actions[action.name], url, askers, post=True)
    assert everything() == before


@pytest.mark.parametrize("role", ROLES)
def test_a_list_offers_each_role_the_plain_actions_of_the_table_and_no_other(
    role: str, rf: RequestFactory
) -> None:
    request = rf.get("/")
    request.user = member(ROLES[role])
    for label, row in MATRIX.items():
        plain = admin_of(label).get_actions(request).keys() - row.actions.keys()
        wanted = {name for name, letters in row.plain.items() if role in letters}
        # Staff who cannot open the list are offered nothing by it.
        assert plain == wanted or role not in row.view, label


@pytest.mark.parametrize(
    ("label", "name"), [(label, name) for label, row in MATRIX.items() for name in row.plain]
)
def test_a_plain_action_does_nothing_for_others(label: str, name: str, askers: Mapping[str, Asker]) -> None:
    row = row_of(label)
    sent = {"action": name, "_selected_action": [row.pk], "post": "yes"}
    before, kept = everything(), list(type(row)._default_manager.order_by("pk").values())
    for who, browser in askers.items():
        if who not in MATRIX[label].plain[name]:
            response: Any = browser.post(page(label, "changelist"), sent)
            # Staff who may open the list get it again, whether it offers them another action or none.
            assert response.status_code in ({200, 302} if who in MATRIX[label].view else {302, 403}), who
    assert (everything(), list(type(row)._default_manager.order_by("pk").values())) == (before, kept)
    askers["S"].post(page(label, "changelist"), sent)
    assert list(type(row)._default_manager.order_by("pk").values()) != kept


@pytest.mark.usefixtures("short_sidebar")
@pytest.mark.parametrize("label", MONEY)
def test_no_role_can_add_change_or_delete_money_rows(label: str, askers: Mapping[str, Asker]) -> None:
    """Forms to these pages are refused above; here a superuser sends one that would change the row."""
    wanted, row, model_admin = MATRIX[label], make(apps.get_model(label)), admin_of(label)
    assert (wanted.add, wanted.change, wanted.delete, model_admin.list_editable) == ("", "", "", ())
    before, kept = everything(), type(row)._default_manager.values().get(pk=row.pk)
    fields = {field.name: "1" for field in row._meta.concrete_fields}
    as_a_list = {"form-TOTAL_FORMS": 1, "form-INITIAL_FORMS": 1, "form-0-id": row.pk}
    listed, shown = page(label, "changelist"), page(label, "change", row.pk)
    browser = askers["S"]
    browser.post(listed, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    browser.post(listed, {"_save": "Save", **as_a_list, **fields})
    for url in (page(label, "add"), shown, page(label, "delete", row.pk)):
        refused: Any = browser.post(url, {**fields, "post": "yes"})
        assert refused.status_code == 403
    assert (everything(), type(row)._default_manager.values().get(pk=row.pk)) == (before, kept)


def test_no_inline_form_adds_money_rows() -> None:
    money = {apps.get_model(name) for name in MONEY}
    request: Any = type("Request", (), {"user": member("superuser")})()
    inlines = [kind(kind.model, admin.site) for label in MATRIX for kind in admin_of(label).inlines]
    for inline in inlines:
        if inline.model in money:
            assert not inline.has_add_permission(request, None), inline
            assert not inline.has_change_permission(request, None), inline
            assert not inline.has_delete_permission(request, None), inline


@pytest.mark.parametrize("staff", [True, False])
def test_a_password_without_the_second_factor_or_a_wallet_opens_nothing(staff: bool) -> None:
    person = member("superuser") if staff else UserFactory.create()
    client = Client()
    client.force_login(person, backend="django.contrib.auth.backends.ModelBackend")
    for label in MATRIX:
        assert client.get(page(label, "changelist")).status_code == 302
