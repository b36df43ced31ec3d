"""Erase the texts that the ledger holds about a person; roots and proofs stay valid."""

import pgtrigger
from django.db import transaction

from credits.models import CreditAccount, CreditEntry
from credits.services.entries import lock_account
from proofs.models import AccountSalt, ErasedEntry, LedgerRoot
from proofs.services.leaves import listed
from users.models import User

ERASED = "erased"


class EntriesStillOpen(Exception):
    """No root covers some of the user's entries yet."""


def reason_to_wait(user: User) -> str:
    """Lock the account until the transaction ends; return why it cannot be erased yet, or an empty string."""
    lock_account(user=user)
    if CreditAccount.objects.filter(user=user, open_holds__gt=0).exists():
        return "credits are held"
    return _uncovered(user)


def _uncovered(user: User) -> str:
    """Return how many of the user's entries no root covers yet, or an empty string."""
    last = LedgerRoot.objects.order_by("-number").values_list("last_entry_id", flat=True).first() or 0
    count = CreditEntry.objects.filter(account__user=user, pk__gt=last).count()
    return f"{count} entries are not covered by a root yet" if count else ""


@transaction.atomic
def erase(*, user: User) -> int:
    """
    Store the hashes of the user's entries, delete their salt and reasons, and return the number of entries.

    Only the owner of the tables has the rights for it. The audit accepts the erasure once the user's deletion has
    the status `erased`, in the same transaction.

    Raises:
        EntriesStillOpen: retry after the next root is closed.
    """
    lock_account(user=user)
    entries = CreditEntry.objects.filter(account__user=user)
    if reason := _uncovered(user):
        raise EntriesStillOpen(reason)
    # Hash the reasons before they are overwritten.
    leaves = listed(list(entries.values_list("pk", flat=True)))
    ErasedEntry.objects.bulk_create(
        ErasedEntry(entry_id=pk, profile_hash=leaf.words.profile, reason_hash=leaf.words.reason)
        for pk, leaf in leaves.items()
        if leaf.secret is not None
    )
    AccountSalt.objects.filter(account__user=user).delete()
    with pgtrigger.ignore("credits.CreditEntry:append_only"):
        entries.exclude(reason="").update(reason=ERASED)
    return len(leaves)
