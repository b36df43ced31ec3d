"""The bank's page that a cardholder is sent to: agree, or not, in a browser."""

from html import escape

from devstack.stripe.billing.cardholders import answer, asking
from devstack.stripe.state.account import Account
from devstack.stripe.wire.exchange import Request, Response

PREFIX = "/_authenticate/"
_HTML = "text/html; charset=utf-8"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Your bank</title>
<h1>Your bank asks</h1><p>{words}</p>{form}</html>"""
_FORM = """<form method="post"><button name="agree" value="yes">Complete</button>
<button name="agree" value="no">Fail</button></form>"""


class CardholderPage:
    """Whoever holds an intent's client secret may answer for its cardholder."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def answer(self, request: Request) -> Response:
        """Show the question, take the answer, and send the browser back to the shop."""
        with self._account.unit():
            intent = asking(self._account, request.path.removeprefix(PREFIX))
            if intent is None or intent["client_secret"] != request.query_texts.get("client_secret"):
                return _page(404, "There is nothing to agree to.")
            if intent["status"] != "requires_action":
                return _page(200, "This is done.")
            if request.method != "POST":
                return _page(200, "Is this you, and do you want to go on?", _FORM)
            back = intent["next_action"]["redirect_to_url"]["return_url"]
            answer(self._account, intent, agreed=request.form.get("agree") == "yes")
        return Response(303, "", {"Location": back}, content_type=_HTML)


def _page(status: int, words: str, form: str = "") -> Response:
    return Response(status, _PAGE.format(words=escape(words), form=form), content_type=_HTML)
