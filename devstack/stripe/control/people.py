"""What people do away from the API: cardholders, and staff at the dashboard."""

from typing import Any

from devstack.stripe.billing.cardholders import answer, asking
from devstack.stripe.control.desk import Body, Desk, needed, wanted
from devstack.stripe.state.things import public
from devstack.stripe.wire.refusals import Invalid, NotFound


def authenticate(desk: Desk, body: Body) -> Any:
    """Let the cardholder agree (or, with `succeeds` false, not) to what a setup or payment intent asks."""
    intent = asking(desk.account, needed(body, "intent"))
    if intent is None:
        raise NotFound("intent", body["intent"], param="intent")
    answer(desk.account, intent, agreed=body.get("succeeds", True))
    return public(intent)


def change_card(desk: Desk, body: Body) -> Any:
    """Let a card be refused with `decline_code` from now on (None: accepted), or ask for its holder."""
    method = wanted(desk, "payment_method", body)
    changes = method["_card"]["changes"]
    if "decline_code" in body:
        changes["refuses_charge"] = body["decline_code"]
    if "asks" in body:
        changes["asks"] = body["asks"]
    return public(method)


def change_settings(desk: Desk, body: Body) -> Any:
    """Change the dashboard: `after_retries` is cancel, unpaid or leave."""
    if body.get("after_retries") not in ("cancel", "unpaid", "leave"):
        raise Invalid("after_retries must be cancel, unpaid or leave.")
    desk.account.change_settings(after_retries=body["after_retries"])
    return {}


CONTROLS = {
    ("POST", "intents/authenticate"): authenticate,
    ("POST", "cards"): change_card,
    ("POST", "settings"): change_settings,
}
