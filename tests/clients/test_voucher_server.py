"""The service accepts what the example of a sponsor's server signs."""

import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import urllib3

from sponsors.rules.vouchers import MOST_CHARACTERS, parse, verify
from tests.clients.voucher_server import EXAMPLE, running_server
from tests.fakes.profiles import address_of, random_address, random_key

_KEY, _CHAIN = random_key(), 42
_SPONSOR, _POLICY = f"s-{secrets.token_hex(4)}", f"p-{secrets.token_hex(4)}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of the running example."""
    with running_server(tmp_path, key=_KEY, sponsor=_SPONSOR, policy=_POLICY, chain_id=_CHAIN) as url:
        yield url


def test_the_service_accepts_a_voucher_of_the_example(server: str) -> None:
    profile = random_address()

    text = urllib3.request("GET", f"{server}/?profile={profile}").data.decode()

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
    assert urllib3.request("GET", f"{server}/?profile=nobody").status == 400


def test_the_example_has_thirty_lines() -> None:
    assert len(EXAMPLE.read_text().splitlines()) <= 30
