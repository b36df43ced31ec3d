"""Disputes, seen from the merchant."""

from typing import Any

from devstack.stripe.billing.disputing import OPEN, close_dispute
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.finding import find, merge_metadata
from devstack.stripe.wire.lists import page
from devstack.stripe.wire.parameters import METADATA, PAGE, takes
from devstack.stripe.wire.refusals import Invalid
from devstack.stripe.wire.routes import Route
from devstack.stripe.wire.shapes import Flag, Hash, Text

_PATH = "/v1/disputes"
_VERDICTS = {"winning_evidence": True, "losing_evidence": False}


def retrieve(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Return a dispute."""
    return find(account, "dispute", identifier)


def list_all(account: Account, params: dict[str, Any]) -> Thing:
    """Return a page of disputes."""
    found = account.store.all("dispute")
    for name in ("charge", "payment_intent"):
        if name in params:
            found = [item for item in found if item[name] == params[name]]
    return page(found, params, _PATH)


def update(account: Account, params: dict[str, Any], identifier: str) -> Thing:
    """Give evidence; Stripe's two test words decide the dispute once they are submitted."""
    dispute = find(account, "dispute", identifier)
    if dispute["status"] not in OPEN:
        raise Invalid("This dispute is already closed", param="dispute")
    with account.telling("charge.dispute.updated", dispute):
        if "metadata" in params:
            merge_metadata(dispute, params["metadata"])
        if "evidence" in params:
            dispute["evidence"] |= params["evidence"]
            dispute["evidence_details"]["has_evidence"] = True
            _submit(dispute, wanted=params.get("submit", True))
    verdict = _VERDICTS.get(dispute["evidence"]["uncategorized_text"])
    if verdict is not None and dispute["status"] == "under_review":
        close_dispute(account, dispute, won=verdict)
    return dispute


def close(account: Account, _params: dict[str, Any], identifier: str) -> Thing:
    """Accept that the dispute is lost."""
    dispute = find(account, "dispute", identifier)
    close_dispute(account, dispute, won=False)
    return dispute


def _submit(dispute: Thing, *, wanted: bool) -> None:
    if wanted:
        dispute["status"] = "under_review"
        dispute["evidence_details"]["submission_count"] += 1


_EVIDENCE = Hash({"product_description": Text(20000), "uncategorized_text": Text(20000)})
ROUTES = (
    Route("GET", _PATH, list_all, takes(**PAGE, charge=Text(), payment_intent=Text())),
    Route("GET", f"{_PATH}/{{id}}", retrieve, takes()),
    Route("POST", f"{_PATH}/{{id}}", update, takes(evidence=_EVIDENCE, metadata=METADATA, submit=Flag())),
    Route("POST", f"{_PATH}/{{id}}/close", close, takes()),
)
