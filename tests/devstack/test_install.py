"""The installation of the environment: uv gets pip's configuration, and pip does it where uv fails."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pip
import pytest

from devstack.install import pip_settings, uv_arguments, uv_environment

_PROJECT = Path(__file__).resolve().parents[2]
_UV_VERSION = re.search(r"^uv==(\S+)", (_PROJECT / "requirements/lock.txt").read_text(), re.MULTILINE)
_ANNOUNCED = r"  … 1 Python packages, up to 1 GB; this takes from some seconds to some minutes\n"
# Stands in for uv: notes how it was called.
_UV = """#!{python}
import json, os, sys
json.dump({{"arguments": sys.argv[1:], "environment": dict(os.environ)}}, open({noted!r}, "w"))
sys.exit({status!r})
"""


@dataclass(frozen=True)
class BareEnvironment:
    """An environment without packages, whose pip finds one package, in a folder."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> set[str]:
        """The packages in it."""
        return {path.name for path in self.folder.glob("lib/python*/site-packages/*.dist-info")}

    @property
    def noted(self) -> dict[str, object]:
        """How uv was called; empty if it was not."""
        path = self.folder / "noted.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def write_uv(self, status: object) -> None:
        """Put in a uv that ends with this exit status, or with this message."""
        text = _UV.format(python=sys.executable, noted=str(self.folder / "noted.json"), status=status)
        (self.folder / "bin" / "uv").write_text(text)
        (self.folder / "bin" / "uv").chmod(0o755)

    def install(self, lock: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Install what the lock file names, with these variables for pip."""
        path = os.pathsep.join([str(self.folder / "tools"), str(_PROJECT / "tools")])
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PIP_NO_INDEX": "1", **variables}
        environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(self.folder / "wheels")}
        command = [str(self.python), "-m", "devstack.install", str(lock)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def bare(tmp_path: Path) -> BareEnvironment:
    """Return a bare environment in which uv of the locked version counts as installed."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "pip").symlink_to(Path(pip.__file__).parent)
    assert _UV_VERSION is not None
    info = tmp_path / "tools" / f"uv-{_UV_VERSION[1]}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: uv\nVersion: {_UV_VERSION[1]}\n")
    return BareEnvironment(tmp_path)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Return a lock file that names one package, whose wheel is where pip looks."""
    wheel = tmp_path / "wheels" / "tiny-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        archive.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(
            "tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")
    path = tmp_path / "lock.txt"
    path.write_text(f"tiny==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    return path


def test_uv_installs_the_lock_file_with_hashes_and_compiles(bare: BareEnvironment, lock: Path) -> None:
    bare.write_uv(0)

    outcome = bare.install(lock, PIP_PROXY="http://proxy:3128")

    assert outcome.returncode == 0, outcome.stderr
    assert re.fullmatch(
        _ANNOUNCED + r"  ✓ uv installed 0 packages, 0 MB, compiled \(\d+\.\d s\)\n", outcome.stdout
    )
    arguments, environment = bare.noted["arguments"], bare.noted["environment"]
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    assert {"--require-hashes", "--compile-bytecode", "--no-index"} <= set(arguments)
    assert f"--find-links={bare.folder / 'wheels'}" in arguments
    assert arguments[-2:] == ["-r", str(lock)]
    assert environment["HTTPS_PROXY"] == "http://proxy:3128"
    assert bare.packages == set()


@pytest.mark.parametrize("status", ["error: no such index", None], ids=["fails", "cannot run"])
def test_pip_installs_if_uv_fails(bare: BareEnvironment, lock: Path, status: str | None) -> None:
    if status is not None:
        bare.write_uv(status)

    outcome = bare.install(lock)

    assert outcome.returncode == 0, outcome.stderr
    reason = status or "No such file or directory"
    assert re.match(
        _ANNOUNCED + r"  · uv failed; pip installs instead, which takes minutes:\n    .*" + reason,
        outcome.stdout,
    )
    assert "  ✓ pip installed 1 packages" in outcome.stdout
    assert bare.packages == {"tiny-1.0.dist-info"}


@pytest.mark.parametrize("is_uv_there", [True, False])
def test_without_a_network_one_message_says_so_and_pip_is_not_run(
    bare: BareEnvironment, lock: Path, is_uv_there: bool
) -> None:
    variables = {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:1/simple", "PIP_RETRIES": "1"}
    if is_uv_there:
        bare.write_uv("error: Failed to fetch: `x`\n  Caused by: error sending request for url (x)")
    else:
        shutil.rmtree(next((bare.folder / "tools").glob("uv-*.dist-info")))

    outcome = bare.install(lock, **variables)

    assert outcome.returncode == 1
    (told,) = outcome.stderr.splitlines()
    assert told.startswith("  ✗ The index of Python packages does not respond, so nothing was installed.")
    assert "uv failed" not in outcome.stdout
    assert bare.packages == set()


def test_a_package_whose_hash_differs_is_not_installed(bare: BareEnvironment, lock: Path) -> None:
    bare.write_uv("error: hash mismatch")
    lock.write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")

    outcome = bare.install(lock)

    assert outcome.returncode != 0
    assert "installed" not in outcome.stdout
    assert bare.packages == set()


def test_settings_of_pip_are_read_from_its_own_listing(tmp_path: Path) -> None:
    configuration = tmp_path / "pip.conf"
    configuration.write_text(
        "[global]\nindex-url = https://global/simple\nfind-links =\n    /one\n    /two\nproxy = http://proxy\n"
        "[install]\nindex-url = https://install/simple\ncert = /install.pem\n"
        "[download]\nindex-url = https://download/simple\n"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PIP_CONFIG_FILE": str(configuration),
        "PIP_CERT": "/variable.pem",
    }
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)

    settings = pip_settings(listed.stdout)

    assert settings["index-url"] == "https://install/simple"
    assert settings["find-links"].split() == ["/one", "/two"]
    assert settings["proxy"] == "http://proxy"
    assert settings["cert"] == "/variable.pem"


def test_uv_gets_the_indexes_of_pip_in_its_environment_and_the_rest_as_arguments() -> None:
    settings = {
        "index-url": "https://user:secret@own/simple",
        "extra-index-url": "https://second/simple\nhttps://third/simple",
        "find-links": "/wheels https://wheels",
        "trusted-host": "own",
        "client-cert": "/client.pem",
        "timeout": "60",
    }

    assert uv_arguments(settings, {}) == [
        "--find-links=/wheels",
        "--find-links=https://wheels",
        "--allow-insecure-host=own",
        "--system-certs",
    ]
    assert uv_environment(settings) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "https://user:secret@own/simple",
        "UV_INDEX": "https://second/simple https://third/simple",
        "SSL_CLIENT_CERT": "/client.pem",
        "UV_HTTP_TIMEOUT": "60",
    }


@pytest.mark.parametrize(
    ("cert", "variables", "argument"),
    [
        ("/pip.pem", {"REQUESTS_CA_BUNDLE": "/requests.pem"}, "--cert=/pip.pem"),
        (
            None,
            {"REQUESTS_CA_BUNDLE": "/requests.pem", "CURL_CA_BUNDLE": "/curl.pem"},
            "--cert=/requests.pem",
        ),
        (None, {"CURL_CA_BUNDLE": "/curl.pem"}, "--cert=/curl.pem"),
    ],
)
def test_uv_trusts_the_certificates_that_pip_trusts(
    cert: str | None, variables: dict[str, str], argument: str
) -> None:
    assert uv_arguments({"cert": cert} if cert else {}, variables) == [argument]
