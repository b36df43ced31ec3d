"""`python -m lab cluster`: start the cluster and serve until Ctrl-C."""

import time
from pathlib import Path

import urllib3

from devstack.console import echo, mute, step
from devstack.journey.relay_calls import write_data
from devstack.wallet import Wallet
from lab.cluster.network import DATABASES
from lab.cluster.stack import Cluster, running_cluster


def run(directory: Path, *, once: bool = False) -> int:
    """Serve until a signal; with `once`, stop after one settled call."""
    began = time.monotonic()
    with running_cluster(directory) as cluster:
        with step("a relay call through HAProxy"):
            _settle_one_call(cluster)
        echo(
            f"Ready in {time.monotonic() - began:.0f} s: {cluster.base_url}/readyz answers {_ready(cluster)}"
        )
        primary = next(host.name for host in DATABASES if cluster.patroni(host).is_primary)
        echo(f"  the primary is {primary}; logs in {directory / 'log'}")
        for name, server in sorted(cluster.servers.items()):
            echo(f"  {name:20} process {server.pid}")
        if not once:
            echo("Serving until Ctrl-C.")
            try:
                while True:
                    time.sleep(3600)
            finally:
                echo("Stopping.")
                mute()
    return 0


def _ready(cluster: Cluster) -> int:
    return urllib3.request("GET", f"{cluster.base_url}/readyz", timeout=10, retries=False).status


def _settle_one_call(cluster: Cluster) -> None:
    wallet = Wallet.of(cluster.profiles[0], cluster.base_url, cluster.outside.world.deployer.rpc)
    wallet.sign_in()
    write_data(wallet)
