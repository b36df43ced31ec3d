"""Changes under a root by a database superuser are found: in the database, and in an export."""

import secrets
from collections.abc import Callable

import pytest
from django.test import override_settings

from credits.models import CreditAccount, ReconciliationRun
from credits.services import reconciliation
from credits.services.reconciliation import BooksDiffer
from proofs import merkle
from proofs.keys import sign
from proofs.models import LedgerRoot
from proofs.services import audit
from proofs.services.export import ledger_lines, read_roots, root_lines
from proofs.services.leaves import between, hashed
from proofs.services.roots import BEFORE_ALL, close_roots, text_of
from proofs.tasks import audit_roots
from tests.database import tamper
from tests.proofs.roots import Covered, audited, covered_ledger, export_faults, grant
from tests.settings import signing_key

pytestmark = pytest.mark.django_db


def _lone_change(ledger: Covered) -> str:
    more = "UPDATE credits_entry SET amount = amount + 1, balance_after = balance_after + 1 WHERE id = %s"
    tamper(more, ledger.last_id)
    return audit.UNCHANGED


def _consistent_change(ledger: Covered) -> str:
    """One credit more in the first entry, carried through all that follow and the account."""
    account = CreditAccount.objects.get(user=ledger.user).pk
    tamper(
        """
        UPDATE credits_entry SET amount = amount + (account_version = 1)::integer, balance_after = balance_after + 1,
               balance_before = balance_before + (account_version > 1)::integer
        WHERE account_id = %s
        """,
        account,
    )
    tamper("UPDATE credits_account SET balance = balance + 1 WHERE id = %s", account)
    assert reconciliation.find_differences() == []
    return audit.UNCHANGED


def _insertion(ledger: Covered) -> str:
    """An entry of 1,000,000 credits, as consistent as can be, under an id that the sequence has left out."""
    _forge(ledger, entry_id=ledger.free_id)
    return audit.NOT_ADDED


def _deletion(ledger: Covered) -> str:
    tamper("DELETE FROM credits_entry WHERE id = %s", ledger.last_id)
    return audit.PRESENT


def _other(column: str, value: str) -> Callable[[Covered], str]:
    def change(ledger: Covered) -> str:
        assert tamper(f"UPDATE credits_entry SET {column} = {value} WHERE id = %s", ledger.adjustment.pk) == 1  # noqa: S608
        assert reconciliation.find_differences() == []
        return audit.UNCHANGED

    return change


def _other_owner(ledger: Covered) -> str:
    """Two users swap their addresses, and nothing else."""
    move = "UPDATE users_user SET profile_address = %s WHERE id = %s"
    tamper(move, None, ledger.user.pk)
    tamper(move, ledger.user.profile_address, ledger.other.pk)
    tamper(move, ledger.other.profile_address, ledger.user.pk)
    return audit.UNCHANGED


def _rewritten_root(ledger: Covered) -> str:
    """The entry, the tree and the root are rewritten; only the signature is out of reach."""
    tamper("UPDATE credits_entry SET reason = 'another' WHERE id = %s", ledger.adjustment.pk)
    root = LedgerRoot.objects.earliest("number")
    seed = bytes(root.hashes.seed)
    nodes = merkle.nodes_of(hashed(between(after=BEFORE_ALL, upto=root.last_entry_id), seed).hashes)
    tamper("UPDATE credits_roottree SET nodes = %s WHERE number = %s", nodes, root.number)
    tamper(
        "UPDATE credits_root SET tree = %s WHERE number = %s", nodes[-merkle.HASH_BYTES :].hex(), root.number
    )
    return audit.SIGNED


def _root_of_another_key(ledger: Covered) -> str:
    """The same, signed with an unknown key."""
    _rewritten_root(ledger)
    root = LedgerRoot.objects.earliest("number")
    with override_settings(LEDGER_SIGNING_KEY=signing_key()):
        key_id, signature = sign(text_of(root))
    tamper("UPDATE credits_root SET key_id = %s, signature = %s WHERE number = 1", key_id, signature)
    return audit.SIGNED


def _missing_root(ledger: Covered) -> str:
    tamper("DELETE FROM credits_roottree WHERE number = 1")
    tamper("DELETE FROM credits_root WHERE number = 1")
    return audit.NUMBERED


_TAMPERINGS = {
    "one credit more": _lone_change,
    "one credit more, carried through": _consistent_change,
    "an entry of 1,000,000 inserted": _insertion,
    "an entry deleted": _deletion,
    "another reason": _other("reason", "'another'"),
    "another owner": _other_owner,
    "a root rewritten": _rewritten_root,
    "a root of another key": _root_of_another_key,
    "a root gone": _missing_root,
}


@pytest.mark.parametrize("change", _TAMPERINGS.values(), ids=_TAMPERINGS)
def test_a_change_under_a_root_is_found_in_the_database_and_in_an_export(
    change: Callable[[Covered], str],
) -> None:
    ledger = covered_ledger()
    assert (audited(), export_faults()) == ([], [])
    rule = change(ledger)
    assert rule in {finding.rule for finding in audited()}
    assert export_faults()


def test_a_finding_names_the_entry(db: None) -> None:
    ledger = covered_ledger()
    _insertion(ledger)
    _other("reason", "'another'")(ledger)
    _deletion(ledger)
    assert {(finding.rule, finding.entry_id) for finding in audited()} == {
        (audit.UNCHANGED, ledger.adjustment.pk),
        (audit.PRESENT, ledger.last_id),
        (audit.NOT_ADDED, ledger.free_id),
    }


def test_an_entry_that_is_forged_before_the_next_root_is_signed_with_the_others() -> None:
    """The open window: until a root is closed over them, the newest entries are only as safe as the database."""
    ledger = covered_ledger()
    _forge(ledger)
    assert audited() == []
    (root,) = close_roots()
    assert root.entry_count == 1
    assert (audited(), export_faults()) == ([], [])
    # From now on it cannot be taken back unseen either.
    tamper("DELETE FROM credits_entry WHERE amount = 1000000")
    assert [finding.rule for finding in audited()] == [audit.PRESENT]


def test_external_copies_of_roots_reveal_that_the_newest_ones_are_missing() -> None:
    ledger = covered_ledger()
    kept = read_roots(root_lines())
    tamper("DELETE FROM credits_roottree WHERE number = 2")
    tamper("DELETE FROM credits_root WHERE number = 2")
    _lone_change(ledger)
    close_roots()
    # The forger has the service sign anew; only who kept the root can tell.
    assert (audited(), export_faults()) == ([], [])
    assert any("not the one that was published" in fault for fault in export_faults(known=kept))
    assert export_faults(known={**kept, 3: "{}"})[-1] == "root 3 was published and is not in the export"


@pytest.mark.parametrize("cut", [1, -1])
def test_an_export_with_a_missing_line_is_refused(cut: int) -> None:
    covered_ledger()
    lines = list(ledger_lines())
    del lines[cut]
    assert export_faults(lines)


def test_an_export_has_neither_addresses_nor_reasons() -> None:
    ledger = covered_ledger()
    text = "".join(ledger_lines())
    assert str(ledger.user.profile_address).lower() not in text.lower()
    assert ledger.adjustment.reason not in text


def test_the_nightly_audit_stores_its_findings_and_fails() -> None:
    ledger = covered_ledger()
    grant(ledger.user, 5)
    audit_roots()
    run = ReconciliationRun.objects.get(kind="roots")
    assert run.counts == {"roots": 2, "entries": 6, "erased": 0, "open entries": 1, "findings": 0}
    _other("reason", "'another'")(ledger)
    with pytest.raises(BooksDiffer):
        audit_roots()
    run = ReconciliationRun.objects.filter(kind="roots").latest("pk")
    assert run.findings[0]["ids"] == {"root": "1", "entry": str(ledger.adjustment.pk)}


def _forge(ledger: Covered, *, entry_id: int | None = None) -> None:
    """Post 1,000,000 credits by hand, with the account and its versions in order."""
    account = CreditAccount.objects.get(user=ledger.user)
    number = entry_id or "nextval('credits_entry_id_seq')"
    tamper(
        f"""
        INSERT INTO credits_entry
            (id, account_id, amount, source, key, balance_before, balance_after, account_version, reason, created_at)
        VALUES ({number}, %s, 1000000, 'SURVEYS', %s, %s, %s, %s, '', now())
        """,  # noqa: S608
        account.pk,
        secrets.token_hex(8),
        account.balance,
        account.balance + 1_000_000,
        account.version + 1,
    )
    tamper(
        "UPDATE credits_account SET balance = balance + 1000000, version = version + 1 WHERE id = %s",
        account.pk,
    )
    assert reconciliation.find_differences() == []
