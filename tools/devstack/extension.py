"""A stand-in for the wallet's browser extension: one script, bundled from the TypeScript client when it is needed."""

from pathlib import Path

from devstack.console import step
from devstack.files import TOOLS, locked
from devstack.toolchain import TYPESCRIPT_CLIENT, run_npm

_SCRIPT = TOOLS / "devstack" / "extension.js"


def extension_script() -> str:
    """
    Return the script, which defines `installExtension`.

    Raises:
        RuntimeError: npm failed; it has printed why.
    """
    with locked(_SCRIPT.with_suffix(".lock")):
        if not _SCRIPT.exists() or _SCRIPT.stat().st_mtime < max(path.stat().st_mtime for path in _sources()):
            with step("bundling the stand-in for the browser extension"):
                if run_npm("run", "bundle-extension"):
                    raise RuntimeError("npm could not bundle the stand-in for the browser extension.")
        return _SCRIPT.read_text()


def _sources() -> list[Path]:
    folders = ("browser", "src", "scripts")
    sources = [path for folder in folders for path in (TYPESCRIPT_CLIENT / folder).iterdir()]
    return [*(path for path in sources if path.name != "schema.ts"), TYPESCRIPT_CLIENT / "package-lock.json"]
