"""A person's words can be erased, and everything that was proved stays proved."""

import pytest

from credits.models import CreditEntry
from proofs.models import AccountSalt
from proofs.services.audit import UNCHANGED, WORDLESS
from proofs.services.erasure import EntriesStillOpen, erase
from proofs.services.proving import prove
from tests.database import tamper
from tests.proofs.roots import audited, covered_ledger, export_faults, grant
from users.models import User

# Only the owner of the tables may.
pytestmark = [pytest.mark.usefixtures("owner_connection"), pytest.mark.django_db]


def test_an_erased_person_leaves_numbers_that_verify() -> None:
    ledger = covered_ledger()
    before = {proof.entry: proof for proof in prove(CreditEntry.objects.all())}

    assert erase(user=ledger.user) == 4
    User.objects.filter(pk=ledger.user.pk).update(profile_address=None)

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
    erase(user=ledger.user)
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
