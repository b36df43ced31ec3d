"""The static files of the image: named by their content down to the imports of modules, and small."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import override_settings

_HASHED = re.compile(r"\.[0-9a-f]{12}\.")
# Those of the admin and the API pages take minutes to compress.
_OTHERS = [
    "unfold",
    "admin",
    "drf_spectacular_sidecar",
    "rest_framework",
    "staff",
    "humanize",
    "otp*",
    "*.map",
]
_BYTES = 90_000


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Collect our static files as the image does."""
    root = tmp_path_factory.mktemp("static")
    storages = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "gateway.web.static.HashedFiles"},
    }
    with override_settings(STATIC_ROOT=root, STORAGES=storages):
        call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=_OTHERS)
        yield root / "portal"


def _hashed(folder: Path, suffix: str) -> list[Path]:
    return [path for path in folder.iterdir() if _HASHED.search(path.name) and path.name.endswith(suffix)]


def test_every_module_imports_others_by_the_names_of_their_content(collected: Path) -> None:
    modules = _hashed(collected, ".js")
    imported = {
        name
        for module in modules
        for name in re.findall(r'(?:from|import\()\s*"\./([^"]+)"', module.read_text())
    }

    assert len(modules) > 20
    assert imported
    assert all(_HASHED.search(name) and (collected / name).exists() for name in imported)


def test_the_whole_page_fits_into_its_budget_when_compressed(collected: Path) -> None:
    files = _hashed(collected, ".br")

    assert {path.name.partition(".")[0] for path in files} >= {
        "account",
        "home",
        "plan",
        "portal",
        "relay-client",
    }
    assert sum(path.stat().st_size for path in files) < _BYTES
