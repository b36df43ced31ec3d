"""`manage.py sync_relayers`."""

import secrets
from datetime import timedelta
from io import StringIO

import pytest
from django.conf import settings as project
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from gateway.chain.signing import get_signer
from relay.models import Relayer, TopUp
from tests.factories import make
from tests.fakes.profiles import random_address
from tests.relay.chain import Chain, node_away
from tests.relay.conftest import LYX

pytestmark = pytest.mark.django_db


def printed(*options: str) -> list[str]:
    out = StringIO()
    call_command("sync_relayers", *options, stdout=out)
    return out.getvalue().splitlines()


def test_it_registers_every_key_once_and_lists_the_relayers(chain: Chain) -> None:
    addresses = get_signer().addresses()
    chain.fund(5 * LYX, *addresses)
    first, *lines = printed()
    assert first == f"{len(addresses)} registered"
    for relayer, line in zip(Relayer.objects.order_by("pk"), lines, strict=True):
        assert line == (
            f"{relayer.address} active next nonce {chain.account_nonce(relayer.address)}"
            f" in flight 0 balance {5 * LYX} wei"
        )

    Relayer.objects.filter(address=addresses[1]).update(is_active=False)
    chain.fund(LYX, addresses[1])
    first, *lines = printed()
    assert first == "0 registered"
    assert f"{addresses[1]} paused" in lines[1]
    assert lines[1].endswith(f"balance {LYX} wei")


def test_it_lists_the_treasury_with_its_balance_and_what_it_sent_today(
    chain: Chain, settings: Settings
) -> None:
    address, held, sent = random_address(), secrets.randbelow(LYX), secrets.randbelow(LYX)
    settings.RELAY_TREASURY_ADDRESS = address
    chain.fund(held, address)
    relayer, *_, treasury = printed()[1:]
    limit = settings.RELAY_TOP_UP_DAILY_WEI
    assert treasury == f"{address} treasury balance {held} wei, sent within 24 hours 0 of {limit} wei"

    for age in (1, 23, 25):
        make(
            TopUp,
            relayer=Relayer.objects.get(address=relayer.split()[0]),
            treasury_address=address,
            status=TopUp.Status.MINED,
            amount_wei=sent,
            created_at=timezone.now() - timedelta(hours=age),
        )
    assert f"sent within 24 hours {2 * sent} of" in printed()[-1]


def test_the_command_fails_if_an_active_relayer_is_underfunded(chain: Chain) -> None:
    rich, poor, *others = get_signer().addresses()
    chain.fund(5 * LYX, rich, *others)
    chain.fund(LYX, poor)
    call_command("sync_relayers", "--at-least", str(LYX), stdout=StringIO())
    with pytest.raises(CommandError, match=poor) as refusal:
        call_command("sync_relayers", "--at-least", str(LYX + 1), stdout=StringIO())
    assert rich not in str(refusal.value)

    Relayer.objects.filter(address=poor).update(is_active=False)
    call_command("sync_relayers", "--at-least", str(LYX + 1), stdout=StringIO())


def test_after_a_restore_the_only_node_is_trusted_about_all_relayers(chain: Chain) -> None:
    printed()
    chain.fund(LYX, *get_signer().addresses())
    for key, address in zip(project.RELAY_RELAYER_KEYS, get_signer().addresses(), strict=True):
        chain.use_key_elsewhere(key, account_nonce=chain.account_nonce(address))
    chain.mine()
    with pytest.raises(CommandError, match="3 of 3 relayers"):
        printed()
    assert {row.state for row in Relayer.objects.all()} == {"active"}
    assert all(" quarantined next nonce " in line for line in printed("--believe-node")[1:])


def test_without_a_node_it_fails(chain: Chain) -> None:
    with pytest.raises(CommandError), node_away():
        printed()
    assert Relayer.objects.count() == 0


def test_without_relayer_keys_the_command_names_where_to_run_it(chain: Chain, settings: Settings) -> None:
    settings.RELAY_SIGNER = "none"
    with pytest.raises(CommandError, match="does not sign"):
        printed()
    assert Relayer.objects.count() == 0
