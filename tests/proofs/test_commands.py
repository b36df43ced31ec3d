"""The commands: an export that is verified without the database, and roots that are kept elsewhere."""

from io import StringIO
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.management import CommandError, call_command
from django.db import connections
from pytest_django import Settings

from proofs.keys import public_keys
from tests.database import tamper
from tests.proofs.roots import covered_ledger


def _run(name: str, *arguments: object) -> str:
    out = StringIO()
    call_command(name, *map(str, arguments), stdout=out)
    return out.getvalue()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The public keys as an operator hands them to an auditor."""
    file = tmp_path / "keys.pem"
    pems = [
        key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in public_keys().values()
    ]
    file.write_bytes(b"".join(pems))
    return file


def test_an_export_is_verified_with_the_public_keys_alone(
    db: None, tmp_path: Path, keys: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = covered_ledger()
    sound, changed = tmp_path / "sound.jsonl", tmp_path / "changed.jsonl"
    _run("export_ledger", sound)
    tamper("UPDATE credits_entry SET reason = 'another' WHERE id = %s", ledger.adjustment.pk)
    _run("export_ledger", changed)

    settings.LEDGER_SIGNING_KEY = ""
    with monkeypatch.context() as without:
        without.setattr(connections["default"], "cursor", None)  # any query fails
        assert "Verified: 2 roots, 6 entries" in _run("verify_ledger", sound, "--keys", keys)
        with pytest.raises(CommandError, match="1 faults"):
            _run("verify_ledger", changed, "--keys", keys)
        with pytest.raises(CommandError, match="No public key"):
            _run("verify_ledger", sound)


def test_external_copies_reveal_a_rewritten_or_missing_root(db: None, tmp_path: Path) -> None:
    covered_ledger()
    assert "2 roots added" in _run("export_ledger_roots", tmp_path / "roots")
    assert "0 roots added" in _run("export_ledger_roots", tmp_path / "roots")
    tamper("UPDATE credits_root SET closed_at = closed_at + interval '1 day' WHERE number = 1")
    tamper("DELETE FROM credits_root WHERE number = 2")
    with pytest.raises(CommandError, match=r"root-000000001\.json; missing now: root-000000002\.json"):
        _run("export_ledger_roots", tmp_path / "roots")
    _run("export_ledger", tmp_path / "ledger")
    with pytest.raises(CommandError, match="faults"):
        _run("verify_ledger", tmp_path / "ledger", "--roots", tmp_path / "roots")


def test_the_commands_close_and_audit(db: None) -> None:
    covered_ledger()
    assert "0 roots closed" in _run("close_ledger_roots")
    assert "No difference" in _run("audit_ledger")
    tamper("DELETE FROM credits_entry")
    with pytest.raises(CommandError, match="6 differences"):
        _run("audit_ledger")
