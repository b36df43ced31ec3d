"""What the servers of `python -m lab cluster` are configured with; the cluster itself takes root, and minutes."""

import json
import os
from configparser import ConfigParser
from contextlib import nullcontext
from pathlib import Path

import pytest

from gateway.common.redis_urls import sentinels
from lab.cluster import network, settings

DATABASES = network.DATABASES


def test_hosts_have_addresses_of_their_own() -> None:
    assert len({host.address for host in network.ALL} | {host.name for host in network.ALL}) == 2 * len(
        network.ALL
    )


def test_a_commit_waits_for_a_second_host_whatever_happens() -> None:
    text = settings.patroni(
        DATABASES[1],
        DATABASES,
        folder=Path("/data"),
        binaries=Path("/bin"),
        template=Path("/t"),
        password="secret",
    )

    everywhere = json.loads(text)["bootstrap"]["dcs"]
    assert everywhere["synchronous_mode"] == "quorum"
    assert everywhere["synchronous_mode_strict"] is True
    # Patroni's own condition: else a primary that cannot reach etcd keeps its place longer than its lease.
    assert everywhere["loop_wait"] + 2 * everywhere["retry_timeout"] <= everywhere["ttl"]


def test_only_the_host_in_front_is_open_to_others() -> None:
    inner, front = settings.balancer(DATABASES), settings.balancer(DATABASES, network.WEBS)

    assert "bind 127.0.0.1:5000" in inner
    assert "listen web" not in inner
    assert all(
        f"{host.address}:5432 check port 8008" in text for host in DATABASES for text in (inner, front)
    )
    assert all(f"{host.address}:8000 check" in front for host in network.WEBS)


def test_the_pooler_leads_to_the_balancer_of_its_host() -> None:
    pooler = ConfigParser()
    pooler.read_string(settings.pooler(Path("/users.txt")))

    assert pooler["databases"]["*"] == "host=127.0.0.1 port=5000"
    assert pooler["databases"]["gateway_reading"] == "host=127.0.0.1 port=5001 dbname=gateway"
    assert pooler["pgbouncer"]["pool_mode"] == "transaction"
    assert pooler["pgbouncer"]["listen_addr"] == "127.0.0.1"


def test_the_service_reads_the_address_of_the_sentinels() -> None:
    place = sentinels(settings.redis_url(DATABASES))

    assert place is not None
    assert place.places == [(host.address, 26379) for host in DATABASES]
    assert f"sentinel monitor {place.service} {DATABASES[0].address} 6379 2" in settings.sentinel(
        DATABASES[1], DATABASES[0]
    )


@pytest.mark.parametrize(
    ("filtered", "policy", "is_refused"),
    [("1", "DROP", True), ("1", "ACCEPT", False), ("0", "DROP", False), (None, "DROP", False)],
)
def test_a_machine_that_drops_what_the_hosts_send_each_other_is_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, filtered: str | None, policy: str, is_refused: bool
) -> None:
    switch, iptables = tmp_path / "bridge-nf-call-iptables", tmp_path / "iptables"
    if filtered is not None:
        switch.write_text(f"{filtered}\n")
    iptables.write_text(f"#!/bin/sh\necho '-P FORWARD {policy}'\necho '-A FORWARD -j DOCKER-USER'\n")
    iptables.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    expected = (
        pytest.raises(RuntimeError, match="iptables -P FORWARD ACCEPT") if is_refused else nullcontext()
    )
    with expected:
        network.check_forwarding(switch)
