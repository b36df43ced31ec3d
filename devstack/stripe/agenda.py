"""What is due, and when: the next moment of every thing that time alone will change."""

from collections.abc import Callable
from dataclasses import dataclass

from devstack.stripe.billing.collecting import collect
from devstack.stripe.billing.ending import expire
from devstack.stripe.billing.invoicing import finalize, finalizes_at
from devstack.stripe.billing.payments import default_intent
from devstack.stripe.billing.refunding import settle_refund, settles_at
from devstack.stripe.billing.renewing import turn, turns_at
from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing

_EXPIRY = 23 * 3600


@dataclass(frozen=True, order=True)
class Due:
    """One thing and its moment; of two at one moment the one that was noted first goes first."""

    moment: int
    place: int
    kind: str
    id: str


class Agenda:
    """The moments of all things, kept true by the store, which tells of every change."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._dues: dict[tuple[str, str], Due] = {}
        self._noted = 0
        for kind in _MOMENTS:
            for thing in account.store.all(kind):
                self._note(kind, thing["id"], thing)
        account.store.watch(self._note)

    def first(self) -> Due | None:
        """Return what is due first."""
        return min(self._dues.values(), default=None)

    def _note(self, kind: str, identifier: str, thing: Thing | None) -> None:
        moment = _MOMENTS[kind](self._account, thing) if thing is not None and kind in _MOMENTS else None
        known = self._dues.get((kind, identifier))
        if moment is None:
            self._dues.pop((kind, identifier), None)
        elif known is None or known.moment != moment:
            self._noted += 1
            self._dues[kind, identifier] = Due(moment, self._noted, kind, identifier)


def _of_subscription(_account: Account, subscription: Thing) -> int | None:
    if subscription["status"] == "incomplete":
        return int(subscription["created"]) + _EXPIRY
    return turns_at(subscription)


def _of_invoice(account: Account, invoice: Thing) -> int | None:
    if invoice["status"] == "open":
        moment: int | None = invoice["next_payment_attempt"]
        return moment
    return finalizes_at(account, invoice)


def _work_on_subscription(account: Account, subscription: Thing) -> None:
    if subscription["status"] == "incomplete":
        expire(account, subscription["id"])
    else:
        turn(account, subscription)


def _work_on_invoice(account: Account, invoice: Thing) -> None:
    if invoice["status"] == "draft":
        finalize(account, invoice)
    intent = default_intent(account, invoice)
    if intent is not None and intent["status"] == "canceled":
        invoice["next_payment_attempt"] = None
    else:
        collect(account, invoice, off_session=True, scheduled=True)


_MOMENTS: dict[str, Callable[[Account, Thing], int | None]] = {
    "_delivery": lambda _, delivery: None if delivery["held"] else delivery["due_at"],
    "subscription": _of_subscription,
    "invoice": _of_invoice,
    "refund": lambda _, refund: settles_at(refund),
}
WORK: dict[str, Callable[[Account, Thing], None]] = {
    "subscription": _work_on_subscription,
    "invoice": _work_on_invoice,
    "refund": settle_refund,
}
