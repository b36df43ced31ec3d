"""Automatic tax: one rate for every location, on invoices and their lines."""

from stripe_double.errors import InvalidRequest
from stripe_double.store import Resource

_PERCENT = 20
_TAX_RATE = "txr_1DoubleStandardRate"


_UNKNOWN_LOCATION = (
    "The customer's location isn't recognized. Set a valid customer address in order to automatically calculate "
    "tax."
)
_LOCATION_CODE = "customer_tax_location_invalid"


def has_location(customer: Resource) -> bool:
    """Return whether the customer's address names a country."""
    return bool((customer["address"] or {}).get("country"))


def require_location(customer: Resource) -> None:
    """Reject a customer without a location."""
    if not has_location(customer):
        raise InvalidRequest(_UNKNOWN_LOCATION, code=_LOCATION_CODE)


def note_missing_location(invoice: Resource) -> None:
    """Note on a draft that its tax is unknown, so that it cannot be finalized."""
    invoice["automatic_tax"]["status"] = "requires_location_inputs"
    invoice["last_finalization_error"] = {
        "code": _LOCATION_CODE,
        "message": _UNKNOWN_LOCATION,
        "type": "invalid_request_error",
    }


def add_taxes(invoice: Resource, behaviours: dict[str, str]) -> None:
    """Tax the lines by the tax behaviour of the items that they bill, by the items' ids; by default exclusive."""
    totals = {"inclusive": 0, "exclusive": 0}
    for line in invoice["lines"]["data"]:
        parent = line["parent"]
        details = parent["subscription_item_details"] or parent["invoice_item_details"]
        behaviour = behaviours.get(details.get("subscription_item") or details["invoice_item"], "unspecified")
        behaviour = "exclusive" if behaviour == "unspecified" else behaviour
        amount = line["amount"] - sum(part["amount"] for part in line["discount_amounts"])
        taxable = round(amount * 100 / (100 + _PERCENT)) if behaviour == "inclusive" else amount
        tax = amount - taxable if behaviour == "inclusive" else round(taxable * _PERCENT / 100)
        line["taxes"] = [_tax(tax, taxable, behaviour)]
        totals[behaviour] += tax
    total = invoice["total"] + totals["exclusive"]
    without = total - sum(totals.values())
    invoice.update(total=total, total_excluding_tax=without, subtotal_excluding_tax=without)
    invoice["amount_due"] = invoice["amount_remaining"] = max(0, total + invoice["starting_balance"])
    invoice["total_taxes"] = [_tax(tax, without, behaviour) for behaviour, tax in totals.items() if tax]
    invoice["automatic_tax"].update(
        enabled=True, status="complete", provider="stripe", liability={"type": "self"}
    )


def _tax(amount: int, taxable: int, behaviour: str) -> Resource:
    return {
        "amount": amount,
        "tax_behavior": behaviour,
        "tax_rate_details": {"tax_rate": _TAX_RATE},
        "taxability_reason": "standard_rated",
        "taxable_amount": taxable,
        "type": "tax_rate_details",
    }
