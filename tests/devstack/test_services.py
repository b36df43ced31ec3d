"""The servers of the stack: they come up, keep their data, and leave nothing behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
import stripe
from psycopg.conninfo import conninfo_to_dict

from devstack.ports import free_port
from devstack.processes import Worker
from devstack.services.server import ServerFailed
from devstack.services.stack import Services, start_services
from devstack.services.stripe_double import StripeDouble
from devstack.stripe_account import StripeAccount, StripeRefused
from devstack.world.deployer import Call
from devstack.world.profiles import ProfilePlan

_STARTS_AND_WAITS = """
import json, sys, time
from pathlib import Path
from devstack.services import start_services
with start_services(Path(sys.argv[1]), durable=False) as services:
    print(json.dumps([server.pid for server in services.servers]), flush=True)
    time.sleep(60)
"""


class SlowWorker(Worker):
    """Reports that it is ready once a file is there."""

    def command(self) -> list[str]:
        return [
            "sh",
            "-c",
            f"until test -e {self.log_path}.go; do sleep 0.02; done; echo worker ready; sleep 60",
        ]


def test_a_restarted_worker_is_ready_only_by_the_log_of_this_start(tmp_path: Path) -> None:
    worker, go = SlowWorker(tmp_path, {"PATH": os.environ["PATH"]}), tmp_path / "worker.log.go"
    go.touch()
    with worker.running():
        assert worker.answers()
    go.unlink()
    worker.start()
    try:
        assert not worker.answers()
        go.touch()
        worker.wait(30)
        assert worker.log_path.read_text().count("worker ready") == 2
    finally:
        worker.stop()


def new_customer(services: Services) -> str:
    """Create a customer at the double; return its id."""
    client = stripe.StripeClient(services.stripe.secret_key, base_addresses={"api": services.stripe.url})
    return str(client.v1.customers.create().id)


def test_the_database_accepts_connections_at_a_url_with_its_socket_folder(services: Services) -> None:
    assert str(conninfo_to_dict(services.database_url)["host"]).startswith("/")
    with psycopg.connect(services.database_url) as connection:
        row = connection.execute("SHOW server_version_num").fetchone()
    assert row is not None
    assert int(row[0]) >= 180000


def test_a_free_port_is_the_preferred_one_unless_it_is_in_use() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port := free_port()))
        assert free_port(port) != port
    assert free_port(port) == port


def test_no_two_processes_are_given_the_same_port_and_none_twice() -> None:
    program = "from devstack.ports import free_port; print(free_port(int(input())))"
    mine = free_port()
    command = [sys.executable, "-c", program]
    other = subprocess.run(command, input=f"{mine}\n", capture_output=True, text=True, check=True)
    assert int(other.stdout) != mine
    assert len({free_port() for _ in range(50)}) == 50


def test_no_outgoing_connection_can_take_a_free_port() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(free_port() for _ in range(50)) < lowest


def test_redis_and_the_chain_are_reachable_at_their_urls(services: Services) -> None:
    assert redis.Redis.from_url(services.redis_url).ping()
    assert int(services.rpc.call("eth_chainId"), 16) == services.chain_id == 4201
    history = services.rpc.call("eth_feeHistory", "0x2", "latest", [50])
    assert len(history["baseFeePerGas"]) == 3


def test_the_stripe_double_serves_only_requests_with_its_secret_key(services: Services) -> None:
    provider = StripeAccount(services.stripe.url, services.stripe.secret_key)
    assert provider.undelivered_events() == []
    with pytest.raises(StripeRefused, match="Invalid API Key"):
        StripeAccount(services.stripe.url, "sk_test_another").undelivered_events()


def test_rows_contracts_and_customers_are_there_again_after_a_restart_in_a_deep_folder(
    tmp_path: Path,
) -> None:
    """Meanwhile no second stack starts in the folder, and after the end nothing of the first is left."""
    deep = tmp_path / "/".join(["a-folder-with-a-long-name"] * 6)
    with start_services(deep, durable=False) as first, psycopg.connect(first.database_url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        profile = first.world.create_profiles(ProfilePlan())[0].profile_address
        code = first.rpc.call("eth_getCode", profile, "latest")
        receipt = first.world.deployer.send([Call(profile, value=1)])[0]
        customer = new_customer(first)
        assert abs(first.stripe.controls.now - time.time()) < 60
        connection.commit()
        with pytest.raises(ServerFailed, match="Another stack is running"), start_services(deep):
            pass
        processes = [psutil.Process(server.pid) for server in first.servers]
        sockets = Path(str(conninfo_to_dict(first.database_url)["host"]))
        assert sockets.is_dir()
    assert not any(process.is_running() for process in processes)
    assert not sockets.exists()
    with start_services(deep, durable=False) as second, psycopg.connect(second.database_url) as connection:
        assert connection.execute("SELECT answer FROM kept").fetchone() == (42,)
        assert second.world.implementations == first.world.implementations
        assert second.rpc.call("eth_getCode", profile, "latest") == code != "0x"
        assert second.rpc.call("eth_getTransactionReceipt", receipt["transactionHash"]) == receipt
        assert second.rpc.call("eth_feeHistory", "0x4", "latest", [50])
        head = int(second.rpc.call("eth_blockNumber"), 16)
        assert second.rpc.call("eth_getTransactionCount", profile, hex(head - 25)) == "0x1"
        assert second.stripe.secret_key == first.stripe.secret_key
        assert second.stripe.webhook_secret == first.stripe.webhook_secret
        assert StripeAccount(second.stripe.url, second.stripe.secret_key).customer(customer)["id"] == customer


def test_a_killed_parent_takes_its_servers_along(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS_AND_WAITS, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as parent:
        assert parent.stdout is not None
        line = next(line for line in parent.stdout if line.startswith("["))
        servers = [psutil.Process(pid) for pid in json.loads(line)]
        os.kill(parent.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs(servers, timeout=60)
    # With PgBouncer there is one more.
    assert len(servers) >= 4
    assert (len(gone), alive) == (len(servers), [])


def test_stripe_keys_are_random_per_folder_and_kept_in_it(tmp_path: Path) -> None:
    one, again, other = (StripeDouble(tmp_path / name, tmp_path) for name in ("a", "a", "b"))
    assert one.secret_key == again.secret_key != other.secret_key
    assert one.webhook_secret == again.webhook_secret != other.webhook_secret
    assert one.secret_key.startswith("sk_test_")
    assert one.publishable_key.startswith("pk_test_")
    assert (tmp_path / "a" / "keys.json").stat().st_mode & 0o077 == 0
