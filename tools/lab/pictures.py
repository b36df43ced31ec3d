"""
Renew the pictures of `docs/`: the browser's tests take them from the real pages.

A moving picture shows an account holder's first minutes. The digest beside the pictures is that of the pages when they
were taken; `tests/docs` fails once a page has changed.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

_PROJECT = Path(__file__).resolve().parents[2]
FOLDER = _PROJECT / "docs" / "pictures"
DIGEST = FOLDER / "pages.sha256"
MOVING = FOLDER / "journey.gif"
_TESTS = ("test_pictures.py", "test_clerk_stories.py", "test_owner_story.py")
# Pictures under another name than the test's.
_RENAMED = {"account-9-won": "account-home-light", "account-12-plan": "account-plan-phone"}
_FRAMES = ("1-landing", "2-sign-in", "3-no-credits", "4-packs", "5-bought", "6-sent", "7-activity", "9-won")
_WIDTH, _HEIGHT, _FRAME_MILLISECONDS = 800, 530, 1_800
# What decides how a page looks. The client library's bundle does not.
_SOURCES = ("templates/**/*", "*/static/**/*", "gateway/*/static/**/*")
_INVISIBLE = {"relay-client.js"}


def pages_digest() -> str:
    """Return the SHA-256 digest of all templates and static files, with their paths."""
    digest = hashlib.sha256()
    found = {path for pattern in _SOURCES for path in _PROJECT.glob(pattern)}
    for path in sorted(found):
        if path.is_file() and path.name not in _INVISIBLE:
            digest.update(f"{path.relative_to(_PROJECT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def renew() -> int:
    """Take the pictures again that the folder holds, and the moving one; return the tests' exit status."""
    digest = pages_digest()
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder)
        command = [sys.executable, "-m", "pytest", "-q", *(f"tests/browser/{test}" for test in _TESTS)]
        status = subprocess.run(command, cwd=_PROJECT, env={**os.environ, "SCREENSHOTS": folder}, check=False)
        if status.returncode:
            return status.returncode
        _make_moving([taken / f"account-{name}.png" for name in _FRAMES])
        for path in taken.glob("*.png"):
            kept = FOLDER / f"{_RENAMED.get(path.stem, path.stem)}.png"
            if kept.exists():
                shutil.copyfile(path, kept)
    DIGEST.write_text(f"{digest}\n", encoding="utf-8")
    return 0


def _make_moving(paths: list[Path]) -> None:
    frames = []
    for path in paths:
        with Image.open(path) as picture:
            shown = picture.convert("RGB")
        height = round(shown.width * _HEIGHT / _WIDTH)
        window = shown.crop((0, 0, shown.width, height))
        frames.append(window.resize((_WIDTH, _HEIGHT), Image.Resampling.LANCZOS).quantize(256))
    first, *others = frames
    first.save(
        MOVING, save_all=True, append_images=others, duration=_FRAME_MILLISECONDS, loop=0, optimize=True
    )
