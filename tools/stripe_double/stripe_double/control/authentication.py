"""3-D Secure: the challenge of an intent, completed in a browser or by the control API."""

from html import escape

from stripe_double.account import Account
from stripe_double.billing.collection import apply_payment_status
from stripe_double.billing.payments import complete_challenge, invoice_of
from stripe_double.errors import InvalidRequest
from stripe_double.http import Request, Response
from stripe_double.resources import setup_intents
from stripe_double.store import Resource

PREFIX = "/_authenticate/"
_KINDS = {"seti": "setup_intent", "pi": "payment_intent"}
_HTML = "text/html; charset=utf-8"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>3-D Secure</title>
<h1>Your bank asks for a confirmation</h1><p>{text}</p>{form}</html>"""
_FORM = """<form method="post"><button name="outcome" value="complete">Complete</button>
<button name="outcome" value="fail">Fail</button></form>"""


def find_intent(account: Account, identifier: str) -> Resource | None:
    """Return the setup or payment intent, or None."""
    return account.store.get(_KINDS.get(identifier.split("_")[0], ""), identifier)


def authenticate(account: Account, intent: Resource, *, succeeds: bool) -> None:
    """Continue the intent after its challenge."""
    if intent["status"] != "requires_action":
        raise InvalidRequest(f"This intent requires no authentication: it is {intent['status']}.")
    if intent["object"] == "setup_intent":
        setup_intents.complete_challenge(account, intent, succeeds=succeeds)
        return
    status = complete_challenge(account, intent, succeeds=succeeds)
    invoice = invoice_of(account, intent)
    if invoice is not None:
        apply_payment_status(account, invoice, status)


class AuthenticationPage:
    """The page of a challenge, which `next_action` links to; its URL contains the client secret."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def handle(self, request: Request) -> Response:
        """Show the challenge, read its outcome, and redirect to the return URL."""
        with self._account.transaction():
            intent = find_intent(self._account, request.path.removeprefix(PREFIX))
            if intent is None or intent["client_secret"] != request.query_params.get("client_secret"):
                return _page(404, "There is no such payment.")
            if intent["status"] != "requires_action":
                return _page(200, "This is done.")
            if request.method != "POST":
                return _page(200, "Do you want to go on?", _FORM)
            return_url = intent["next_action"]["redirect_to_url"]["return_url"]
            authenticate(self._account, intent, succeeds=request.form.get("outcome") == "complete")
        return Response(303, "", {"Location": return_url}, content_type=_HTML)


def _page(status: int, text: str, form: str = "") -> Response:
    return Response(status, _PAGE.format(text=escape(text), form=form), content_type=_HTML)
