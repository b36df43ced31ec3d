"""`manage.py accept_reorganisation`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from gateway.chain.client import get_chain_client
from relay.models import FinalBlock
from tests.relay.chain import Chain

pytestmark = pytest.mark.django_db


def test_it_makes_a_block_of_the_chain_the_final_one(chain: Chain) -> None:
    height = get_chain_client().head().number - 3
    for number, replaced_at in ((height + 2, None), (height + 1, "2026-01-01T00:00:00Z")):
        FinalBlock.objects.update_or_create(
            defaults={"number": number, "block_hash": "0x" + "ab" * 32, "replaced_at": replaced_at}
        )
        out = StringIO()
        call_command("accept_reorganisation", "--from-block", str(height), stdout=out)
        row = FinalBlock.objects.get()
        assert (row.number, row.replaced_at) == (height, None)
        assert out.getvalue().startswith(f"Block {height} ({row.block_hash}) is final")
        assert row.block_hash != "0x" + "ab" * 32


def test_a_block_that_the_chain_does_not_have_is_refused(chain: Chain) -> None:
    height = get_chain_client().head().number
    with pytest.raises(CommandError, match=f"the chain ends at block {height}"):
        call_command("accept_reorganisation", "--from-block", str(height + 1))
    assert not FinalBlock.objects.exists()
