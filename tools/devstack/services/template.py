"""A database with all tables, made once per set of migrations; every stack and test run starts with a copy."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from devstack.console import step
from devstack.django_process import run_django
from devstack.files import DATA, PROJECT, locked
from devstack.services.postgres import APPLICATION_ROLE, Postgres

TEMPLATE = "gateway_template"
_LOCK = DATA / "template.lock"
_SOURCES = (
    "requirements/*.txt",
    "*/migrations/*.py",
    "*/*/migrations/*.py",
    "*/functions.sql",
    "*/retired.sql",
    "*/models.py",
    "*/models/*.py",
    "backoffice/privileges.py",
    "gateway/common/sql_functions.py",
    "gateway/common/statements.py",
)


def copy_template(cluster: Path) -> None:
    """Create a cluster with the database `TEMPLATE`."""
    with locked(_LOCK):
        subprocess.run(["cp", "-a", str(_template()), str(cluster)], check=True)


def make_template() -> None:
    """Create the cluster that `copy_template` copies, unless it exists."""
    with locked(_LOCK):
        _template()


def template_key() -> str:
    """
    Return a hash of the template's inputs: migrations, SQL functions, grants, packages, and models.

    The SQL functions are rendered with the models' constants.
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in _SOURCES for path in PROJECT.glob(pattern)}):
        digest.update(f"\0{path.relative_to(PROJECT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _template() -> Path:
    cluster = DATA / f"template-{template_key()}"
    if not cluster.exists():
        for old in DATA.glob("template-*"):
            shutil.rmtree(old)
        with (
            step("creating the tables, once per set of migrations"),
            tempfile.TemporaryDirectory(prefix="making-", dir=DATA) as folder,
        ):
            _migrate(Path(folder))
            (Path(folder) / "cluster").rename(cluster)
    return cluster


def _migrate(folder: Path) -> None:
    with Postgres(folder, folder / "log", durable=False).running() as server:
        server.ensure_application_role()
        server.ensure_database(TEMPLATE)
        # Tables depend on no secret, so the tests' settings suffice.
        settings = {
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "DATABASE_URL": server.url(TEMPLATE),
            "DATABASE_APPLICATION_ROLE": APPLICATION_ROLE,
        }
        run_django(folder / "log" / "migrate.log", os.environ | settings, "manage.py", "migrate")
