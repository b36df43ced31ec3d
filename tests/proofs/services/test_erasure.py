"""A person's words can be erased, and everything that was proved stays proved."""

import pytest

from credits.models import CreditEntry
from proofs.models import AccountSalt, ErasedEntry
from proofs.services.audit import ERASED_WITH_OWNER, UNCHANGED, WORDLESS
from proofs.services.erasure import EntriesStillOpen, erase
from proofs.services.leaves import listed
from proofs.services.proving import prove
from tests.database import tamper
from tests.factories import UserFactory
from tests.proofs.roots import audited, covered_ledger, erase_with_account, export_faults, grant

# Only the owner of the tables may.
pytestmark = [pytest.mark.usefixtures("owner_connection"), pytest.mark.django_db]


def test_an_erased_user_leaves_verifiable_entries() -> None:
    ledger = covered_ledger()
    before = {proof.entry: proof for proof in prove(CreditEntry.objects.all())}

    assert erase_with_account(ledger.user) == 4

    assert not AccountSalt.objects.filter(account__user=ledger.user).exists()
    assert CreditEntry.objects.get(pk=ledger.adjustment.pk).reason == "erased"
    assert (audited(), export_faults()) == ([], [])
    for proof in prove(CreditEntry.objects.all()):
        assert (proof.leaf, proof.path, proof.root) == (
            before[proof.entry].leaf,
            before[proof.entry].path,
            before[proof.entry].root,
        )
    mine = prove(CreditEntry.objects.filter(account__user=ledger.user))
    assert [proof.disclosed for proof in mine] == [{}] * 4
    # A user who returns has readable entries again.
    grant(ledger.user, 9)
    assert audited() == []


def test_nothing_else_can_be_changed_under_cover_of_an_erasure() -> None:
    ledger = covered_ledger()
    erase_with_account(ledger.user)
    change = "UPDATE credits_entry SET {} WHERE id = %s"
    tamper(change.format("reason = 'another'"), ledger.adjustment.pk)
    assert [finding.rule for finding in audited()] == [WORDLESS]
    tamper(change.format("reason = 'erased', actor_id = NULL"), ledger.adjustment.pk)
    assert [finding.rule for finding in audited()] == [UNCHANGED]


def test_entries_that_no_root_covers_are_not_erased() -> None:
    ledger = covered_ledger()
    grant(ledger.user, 9)
    with pytest.raises(EntriesStillOpen):
        erase(user=ledger.user)
    assert AccountSalt.objects.filter(account__user=ledger.user).exists()


def test_accounts_swapped_under_forged_erasures_are_found() -> None:
    """Only the owner of the tables can try: it stores the true hashes of two people's entries and swaps the people."""
    ledger = covered_ledger()
    people = [ledger.user, ledger.other]
    leaves = listed(list(CreditEntry.objects.filter(account__user__in=people).values_list("pk", flat=True)))
    ErasedEntry.objects.bulk_create(
        ErasedEntry(entry_id=pk, profile_hash=leaf.words.profile, reason_hash=leaf.words.reason)
        for pk, leaf in leaves.items()
    )
    tamper(
        "UPDATE credits_account SET user_id = -user_id WHERE user_id = ANY(%s)", [user.pk for user in people]
    )
    for user, other in (people, people[::-1]):
        tamper("UPDATE credits_account SET user_id = %s WHERE user_id = %s", user.pk, -other.pk)

    forged, changed = (
        {finding.entry_id for finding in audited() if finding.rule == rule}
        for rule in (ERASED_WITH_OWNER, UNCHANGED)
    )
    assert forged == changed == set(leaves)

    AccountSalt.objects.all().delete()
    assert {finding.entry_id for finding in audited() if finding.rule == ERASED_WITH_OWNER} == set(leaves)


def test_an_erased_account_that_gets_an_owner_is_found() -> None:
    ledger = covered_ledger()
    erase_with_account(ledger.user)
    tamper(
        "UPDATE credits_account SET user_id = %s WHERE user_id = %s", UserFactory.create().pk, ledger.user.pk
    )

    assert {finding.rule for finding in audited()} == {ERASED_WITH_OWNER, UNCHANGED}
