"""Hosted pages: an invoice, the customer portal, and Checkout in setup mode."""

from collections.abc import Callable
from html import escape
from typing import Any

from stripe_double.account import Account
from stripe_double.billing import customers, payment_intents, subscriptions
from stripe_double.billing.collection import ENDED_STATUSES
from stripe_double.billing.payments import payment_intent_of
from stripe_double.errors import RecordedCardError, StripeError
from stripe_double.events import emit, emit_changes
from stripe_double.http import Request, Response
from stripe_double.resources import setup_intents
from stripe_double.resources.cards import CARDS
from stripe_double.store import Resource

PREFIX = "/_pages/"
_HTML = "text/html; charset=utf-8"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width"><style>body{{font:16px sans-serif;max-width:32rem;margin:2rem auto;
padding:0 1rem}}button,select{{font:inherit;padding:.4rem}}[role=alert]{{color:#b00020}}</style>
<h1>{title}</h1>{body}</html>"""


class HostedPages:
    """Serves `/_pages`; knowing the URL of a page is enough, as at Stripe."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def handle(self, request: Request) -> Response:
        """Show the page of the path, or process its form."""
        kind, _, identifier = request.path.removeprefix(PREFIX).partition("/")
        page = _PAGES.get(kind)
        if page is None:
            return _page(404, "Not found", "")
        try:
            with self._account.transaction():
                return page(self._account, identifier, request.form if request.method == "POST" else {})
        except RecordedCardError as error:
            alert = f'<p role="alert">{escape(str(error))}</p>'
            with self._account.transaction():
                shown = page(self._account, identifier, {})
            return Response(402, str(shown.body).replace("</h1>", f"</h1>{alert}", 1), content_type=_HTML)
        except StripeError as error:
            return _page(error.status, "This is not possible", f'<p role="alert">{escape(str(error))}</p>')


def _invoice(account: Account, secret: str, form: Resource) -> Response:
    """An invoice with a payment form while it is open; `pdf` is without the form."""
    identifier, _, kind = secret.partition(".")
    invoice = next((row for row in account.store.all("invoice") if row.get("_secret") == identifier), None)
    if invoice is None:
        return _page(404, "Not found", "")
    intent = payment_intent_of(account, invoice)
    if form and intent is not None:
        return_url = f"{account.url}{PREFIX}invoice/{secret}"
        params = {"payment_method": form["payment_method"], "return_url": return_url}
        return _onwards(payment_intents.confirm(account, params, intent["id"]), return_url)
    money = f"{invoice['total'] / 100:.2f} {invoice['currency'].upper()}"
    body = f"<p>{money}, {escape(invoice['status'])}</p>"
    can_pay = invoice["status"] == "open" and kind != "pdf"
    return _page(200, f"Invoice {invoice['number']}", body + (_card_form("Pay") if can_pay else ""))


def _checkout(account: Account, secret: str, form: Resource) -> Response:
    """Checkout in setup mode: capture a card and redirect back."""
    identifier, _, step = secret.partition("/")
    session = account.store.get("checkout.session", identifier)
    if session is None or session["expires_at"] < account.now:
        return _page(404, "Not found", "")
    intent = account.store.get("setup_intent", session["setup_intent"]) or {}
    if form:
        return_url = f"{account.url}{PREFIX}checkout/{identifier}/done"
        params = {"payment_method": form["payment_method"], "return_url": return_url}
        intent = setup_intents.confirm(account, params, intent["id"])
        _note_country(account, intent, form.get("country"))
        if intent["status"] == "requires_action":
            return _onwards(intent, return_url)
        step = "done"
    if step == "done" and intent["status"] == "succeeded":
        if session["status"] == "open":
            session["status"] = "complete"
            emit(account, "checkout.session.completed", session)
        return _see(session["success_url"])
    back = session["cancel_url"]
    link = f'<p><a href="{escape(back)}">Back</a></p>' if back else ""
    asks_where = session["billing_address_collection"] == "required"
    country = '<label>Country <input name="country" value="DE" size="2"></label> ' if asks_where else ""
    return _page(200, "Save a card", _card_form("Save", country) + link)


def _portal(account: Account, secret: str, form: Resource) -> Response:
    """The customer portal: cards, cancellation and invoices."""
    session = account.store.get("billing_portal.session", secret)
    if session is None:
        return _page(404, "Not found", "")
    customer = customers.find_existing(account, session["customer"])
    here = f"{account.url}{PREFIX}portal/{secret}"
    if "payment_method" in form:
        return _add_card(account, customer, form["payment_method"], here)
    if "cancel" in form or "resume" in form:
        subscription = account.store.get("subscription", form.get("cancel") or form.get("resume") or "") or {}
        end = subscription["items"]["data"][0]["current_period_end"] if "cancel" in form else None
        subscriptions.update(account, {"cancel_at": end}, subscription["id"])
        return _see(here)
    rows = [row for row in account.store.all("subscription") if row["customer"] == customer["id"]]
    body = "".join(_subscription_form(row) for row in rows if row["status"] not in ENDED_STATUSES)
    body += _card_form("Add card") + "<h2>Invoices</h2><ul>"
    for invoice in account.store.all("invoice"):
        if invoice["customer"] == customer["id"] and invoice["hosted_invoice_url"]:
            text = f"{invoice['number']} {invoice['total'] / 100:.2f} {invoice['status']}"
            body += f'<li><a href="{escape(invoice["hosted_invoice_url"])}">{escape(text)}</a></li>'
    body += "</ul>"
    if session["return_url"]:
        body += f'<p><a href="{escape(session["return_url"])}">Return</a></p>'
    return _page(200, "Your subscription", body)


def _add_card(account: Account, customer: Resource, payment_method: str, here: str) -> Response:
    intent = setup_intents.create(account, {"customer": customer["id"], "payment_method_types": ["card"]})
    params = {"payment_method": payment_method, "return_url": here}
    intent = setup_intents.confirm(account, params, intent["id"])
    if intent["status"] == "succeeded":
        with emit_changes(account, "customer.updated", customer):
            customer["invoice_settings"]["default_payment_method"] = intent["payment_method"]
    return _onwards(intent, here)


def _subscription_form(row: Resource) -> str:
    item = row["items"]["data"][0]
    money = f"{item['price']['unit_amount'] / 100:.2f} {row['currency'].upper()}"
    name, label = ("resume", "Do not cancel") if row["cancel_at"] else ("cancel", "Cancel")
    return (
        f"<p>{money} a month, {escape(row['status'])}</p>"
        f'<form method="post"><button name="{name}" value="{row["id"]}">{label}</button></form>'
    )


def _note_country(account: Account, intent: Resource, country: str | None) -> None:
    method = account.store.get("payment_method", intent["payment_method"])
    if country and method is not None:
        unknown = ("city", "line1", "line2", "postal_code", "state")
        method["billing_details"]["address"] = {**dict.fromkeys(unknown), "country": country}


def _card_form(label: str, more: str = "") -> str:
    options = "".join(
        f'<option value="{name}">{name} ····{card.last4}</option>' for name, card in CARDS.items()
    )
    return (
        '<form method="post"><label>Test card <select name="payment_method">'
        f"{options}</select></label> {more}<button>{label}</button></form>"
    )


def _onwards(intent: Resource, return_url: str) -> Response:
    """Redirect to the intent's challenge, or back."""
    action = intent["next_action"]
    return _see(action["redirect_to_url"]["url"] if action else return_url)


def _see(url: str) -> Response:
    return Response(303, "", {"Location": url}, content_type=_HTML)


def _page(status: int, title: str, body: str) -> Response:
    return Response(status, _PAGE.format(title=escape(title), body=body), content_type=_HTML)


_PAGES: dict[str, Callable[[Account, str, dict[str, Any]], Response]] = {
    "invoice": _invoice,
    "checkout": _checkout,
    "portal": _portal,
}
