"""Erase what the ledger says of a person in words, so that every proof and every root stays good."""

import pgtrigger
from django.db import transaction

from credits.models import AccountSalt, CreditAccount, CreditEntry, ErasedEntry, LedgerRoot
from credits.services.entries import lock_account
from credits.services.leaves import listed
from users.models import User

ERASED = "erased"


class EntriesStillOpen(Exception):
    """Some entries of the user are under no root yet."""


def what_is_open(user: User) -> str:
    """Lock the account until the transaction ends; return why it cannot be erased yet, or nothing where it can."""
    lock_account(user=user)
    if CreditAccount.objects.filter(user=user, open_holds__gt=0).exists():
        return "credits are held"
    count = _uncovered(user)
    return f"{count} entries are under no root yet" if count else ""


def _uncovered(user: User) -> int:
    last = LedgerRoot.objects.order_by("-number").values_list("last_entry_id", flat=True).first() or 0
    return CreditEntry.objects.filter(account__user=user, pk__gt=last).count()


@transaction.atomic
def erase(*, user: User) -> int:
    """
    Keep the hashes of the user's entries, delete their salt and the reasons, and return how many entries there are.

    Only the owner of the tables may. What other tables say of the person, such as the profile's address, stays.

    Raises:
        EntriesStillOpen: repeat it when the next root is closed.
    """
    lock_account(user=user)
    entries = CreditEntry.objects.filter(account__user=user)
    if count := _uncovered(user):
        raise EntriesStillOpen(f"{count} entries are under no root yet")
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
