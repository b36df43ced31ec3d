"""What stands in the service's database about payments, and rows and tables to hold it up with."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from tests.journeys.records import Lock, Records

_OF_USER = "JOIN users_user AS owner ON owner.id = row.user_id WHERE owner.profile_address = %s"
_OPERATIONS = (
    f"SELECT row.kind, row.status FROM payments_billingoperation AS row {_OF_USER} ORDER BY created_at"  # noqa: S608
)
_CUSTOMERS = f"SELECT row.stripe_customer_id AS id FROM payments_customer AS row {_OF_USER}"  # noqa: S608
_SUBSCRIPTIONS = f"""
SELECT row.stripe_subscription_id AS id, row.status, row.amount_minor
FROM payments_subscription AS row {_OF_USER} ORDER BY row.id
"""  # noqa: S608
_PAYOUTS = f"""
SELECT row.stripe_invoice_id AS invoice, row.amount_minor, row.credits
FROM payments_payout AS row {_OF_USER} ORDER BY row.id
"""  # noqa: S608
_EVENTS = "SELECT stripe_event_id AS id, status FROM payments_stripeevent WHERE stripe_event_id = ANY (%s)"
_UNPROCESSED = "SELECT count(*) FROM payments_stripeevent WHERE status <> 'processed'"
_ENTRIES = """
SELECT entry.amount FROM credits_entry AS entry
JOIN credits_account AS account ON account.id = entry.account_id
JOIN users_user AS owner ON owner.id = account.user_id
WHERE owner.profile_address = %s AND entry.source = 'SUBSCRIBED_PAYOUT' ORDER BY entry.id
"""
_AGE = """
UPDATE payments_billingoperation SET created_at = created_at - interval '2 minutes' WHERE status = 'pending'
"""
_LOCK_CUSTOMER = f"SELECT row.id FROM payments_customer AS row {_OF_USER} FOR UPDATE OF row"  # noqa: S608


@dataclass(frozen=True)
class Operation:
    """A billing operation."""

    kind: str
    status: str


@dataclass(frozen=True)
class Identified:
    """A row with the id that it has at Stripe."""

    id: str


@dataclass(frozen=True)
class Running:
    """A subscription."""

    id: str
    status: str
    amount_minor: int


@dataclass(frozen=True)
class PaidOut:
    """A payout."""

    invoice: str
    amount_minor: int
    credits: int


@dataclass(frozen=True)
class InboxEvent:
    """An event of the inbox."""

    id: str
    status: str


class BillingRecords(Records):
    """Readings of one database."""

    def operations(self, profile_address: str) -> list[Operation]:
        """Return the billing operations of a profile, oldest first."""
        return self._read(Operation, _OPERATIONS, profile_address)

    def pending(self, profile_address: str) -> list[str]:
        """Return the kinds of the operations that are not finished; the database allows one at most."""
        return [row.kind for row in self.operations(profile_address) if row.status == "pending"]

    def customers(self, profile_address: str) -> list[str]:
        """Return the ids of a profile's customers."""
        return [row.id for row in self._read(Identified, _CUSTOMERS, profile_address)]

    def subscriptions(self, profile_address: str) -> list[Running]:
        """Return the subscriptions of a profile, oldest first."""
        return self._read(Running, _SUBSCRIPTIONS, profile_address)

    def payouts(self, profile_address: str) -> list[PaidOut]:
        """Return the payouts of a profile, oldest first."""
        return self._read(PaidOut, _PAYOUTS, profile_address)

    def paid_out(self, profile_address: str) -> list[int]:
        """Return what the ledger has of payouts to a profile, one number per entry."""
        return self._numbers(_ENTRIES, profile_address)

    def events(self, *ids: str) -> list[InboxEvent]:
        """Return those of these events that are in the inbox."""
        return self._read(InboxEvent, _EVENTS, list(ids))

    def unprocessed(self) -> int:
        """Return how many events of the inbox are still to be processed, of any user."""
        return self._numbers(_UNPROCESSED)[0]

    def age_operations(self) -> None:
        """Let two minutes pass for pending operations: no process works on them any more."""
        with psycopg.connect(self._url) as connection:
            connection.execute(_AGE)

    @contextmanager
    def locked_customer(self, profile_address: str) -> Iterator[Lock]:
        """Hold the row of a customer for the length of the block."""
        with self._locked(_LOCK_CUSTOMER, profile_address) as lock:
            yield lock

    @contextmanager
    def unwritable(self, table: str) -> Iterator[Lock]:
        """Lock a table against writes for the length of the block; reads continue."""
        with self._locked_table(table, "SHARE") as lock:
            yield lock

    @contextmanager
    def unreadable(self, table: str) -> Iterator[Lock]:
        """Lock a table against reads and writes for the length of the block."""
        with self._locked_table(table, "ACCESS EXCLUSIVE") as lock:
            yield lock

    @contextmanager
    def _locked_table(self, table: str, mode: str) -> Iterator[Lock]:
        with psycopg.connect(self._url) as connection:
            connection.execute(f"LOCK TABLE {table} IN {mode} MODE".encode())
            yield Lock(self, connection.info.backend_pid)
            connection.rollback()
