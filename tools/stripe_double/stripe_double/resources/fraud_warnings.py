"""Early fraud warnings of charges, which card networks send."""

from stripe_double.account import Account
from stripe_double.events import emit, emit_changes
from stripe_double.parameters import String
from stripe_double.routing import list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/radar/early_fraud_warnings"
_KIND = "radar.early_fraud_warning"


def warn(account: Account, charge: Resource) -> Resource:
    """Warn of a charge."""
    warning: Resource = {
        "object": _KIND,
        "id": new_id("issfr"),
        "actionable": _is_actionable(charge),
        "charge": charge["id"],
        "created": account.now,
        "fraud_type": "made_with_stolen_card",
        "livemode": False,
        "payment_intent": charge["payment_intent"],
    }
    emit(account, f"{_KIND}.created", account.add(warning))
    return warning


def update_warnings(account: Account, charge: Resource) -> None:
    """Update the warnings of a charge that was refunded or disputed."""
    for row in account.store.all(_KIND):
        if row["charge"] == charge["id"]:
            warning = account.store.get(_KIND, row["id"]) or row
            with emit_changes(account, f"{_KIND}.updated", warning):
                warning["actionable"] = _is_actionable(charge)


def _is_actionable(charge: Resource) -> bool:
    """Whether a refund can still avoid a dispute."""
    return not (charge["refunded"] or charge["disputed"])


ROUTES = (
    list_route(_PATH, _KIND, charge=String(), payment_intent=String()),
    retrieve_route(_PATH, _KIND),
)
