"""A ledger under signed roots, and what can be found wrong with it."""

import secrets
from dataclasses import dataclass

from django.utils.timezone import now

from credits.models import CreditEntry, EntrySource
from credits.services import entries
from proofs.keys import public_keys
from proofs.services import audit
from proofs.services.erasure import erase
from proofs.services.export import ExportVerification, ledger_lines
from proofs.services.roots import close_roots
from tests.credits.rows import query
from tests.factories import UserFactory
from users.models import AccountDeletion, User


@dataclass(frozen=True)
class Covered:
    """Two users whose entries are under two roots; the adjustment names a clerk and a reason."""

    user: User
    other: User
    adjustment: CreditEntry
    # An id below those of the newest entries that no entry has.
    free_id: int
    last_id: int


def covered_ledger() -> Covered:
    """Post entries, close a root, post some more, and close another one."""
    user, other, staff = (UserFactory.create() for _ in range(3))
    grant(user, 500)
    grant(other, 700)
    adjustment = entries.adjust(
        user=user, credits=-20, key=secrets.token_hex(8), actor=staff, reason=f"ticket {secrets.token_hex(4)}"
    )
    close_roots()
    grant(user, 30)
    grant(other, 40)
    ((free_id,),) = query("SELECT nextval('credits_entry_id_seq')")
    last = grant(user, 50)
    close_roots()
    return Covered(user, other, adjustment, free_id, last.pk)


def grant(user: User, credits: int) -> CreditEntry:
    return entries.grant(user=user, credits=credits, source=EntrySource.SURVEYS, key=secrets.token_hex(8))


def audited() -> list[audit.Finding]:
    """Return what the audit of the database finds."""
    counts = {"roots": 0, "entries": 0, "erased": 0, "open entries": 0}
    return list(audit.find_differences(counts))


def export_faults(lines: list[str] | None = None, known: dict[int, str] | None = None) -> list[str]:
    """Return the faults of an export; nothing but its lines is read."""
    return list(ExportVerification(public_keys(), known).faults(lines or list(ledger_lines())))


def erase_with_account(user: User) -> int:
    """Erase the user's entries and complete the deletion, as the eraser does; return the number of entries."""
    count = erase(user=user)
    AccountDeletion.objects.create(
        user=user, status="erased", requested_at=now(), billing_ended_at=now(), erased_at=now()
    )
    User.objects.filter(pk=user.pk).update(is_active=False, profile_address=None)
    return count
