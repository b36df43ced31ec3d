"""Early fraud warnings of charges, which card networks send."""

from stripe_double.account import Account
from stripe_double.events import emit
from stripe_double.parameters import String
from stripe_double.routing import list_route, retrieve_route
from stripe_double.store import Resource, new_id

_PATH = "/v1/radar/early_fraud_warnings"


def warn(account: Account, charge: Resource) -> Resource:
    """Warn of a charge; the warning can be acted on while the charge is neither refunded nor disputed."""
    warning: Resource = {
        "object": "radar.early_fraud_warning",
        "id": new_id("issfr"),
        "actionable": not (charge["refunded"] or charge["disputed"]),
        "charge": charge["id"],
        "created": account.now,
        "fraud_type": "made_with_stolen_card",
        "livemode": False,
        "payment_intent": charge["payment_intent"],
    }
    emit(account, "radar.early_fraud_warning.created", account.add(warning))
    return warning


ROUTES = (
    list_route(_PATH, "radar.early_fraud_warning", charge=String(), payment_intent=String()),
    retrieve_route(_PATH, "radar.early_fraud_warning"),
)
