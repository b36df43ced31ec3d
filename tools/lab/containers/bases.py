"""
The base images of Dockerfile and compose.yaml: pulled, or made of Debian's packages where no registry is reached.

Images made here have the tags without the digests, and entry points that do as much as the service needs of the
official ones: the first start of PostgreSQL makes the database behind a server at the socket alone.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from devstack.console import echo, step
from lab.containers.engine import Engine

_PIN = re.compile(r"\b(?P<tag>(?P<name>python|postgres|redis):[\w.-]+)@sha256:[0-9a-f]{64}")
_PYTHON = ("bookworm", "python3,python3-venv,ca-certificates")
_POSTGRES_ENTRY = """#!/bin/sh
set -eu
[ "${1:-postgres}" = postgres ] || exec "$@"
[ $# -gt 0 ] || set -- postgres
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 700 "$PGDATA"
    chown postgres:postgres /var/lib/postgresql /var/lib/postgresql/18
    install -d -o postgres -g postgres -m 3777 /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    printf %s "$POSTGRES_PASSWORD" > /tmp/password
    initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256
    rm /tmp/password
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    pg_ctl -o "-c listen_addresses=''" -w start
    createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    sleep 5
    pg_ctl -m fast -w stop
fi
exec "$@" -c listen_addresses='*'
"""
_REDIS_ENTRY = """#!/bin/sh
[ "$1" != redis-server ] || set -- "$@" --protected-mode no
exec "$@"
"""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# By image: Debian's suite and packages, the entry point, and the rest of the image.
_MADE = {
    "python": (*_PYTHON, "", ["CMD python3"]),
    "postgres": (
        *("sid", "postgresql-18", _POSTGRES_ENTRY),
        [
            f"ENV PATH=/usr/lib/postgresql/18/bin:{_PATH} PGDATA=/var/lib/postgresql/18/docker LANG=C.utf8",
            "VOLUME /var/lib/postgresql",
            "STOPSIGNAL SIGINT",
            'ENTRYPOINT ["entry"]',
            'CMD ["postgres"]',
        ],
    ),
    "redis": (
        *("trixie", "redis-server", _REDIS_ENTRY),
        ["WORKDIR /data", "VOLUME /data", 'ENTRYPOINT ["entry"]', 'CMD ["redis-server"]'],
    ),
}
# The official image's, which docs/runbook.md names.
_POSTGRES_ID = 999


def provide_bases(engine: Engine, folder: Path) -> str:
    """Have every pinned base image; return the lines of compose.override.yaml for other ones."""
    texts = [(folder / name).read_text() for name in ("Dockerfile", "compose.yaml")]
    pins = {match["name"]: match for text in texts for match in _PIN.finditer(text)}
    if all(_is_there(engine, match[0]) or _is_pulled(engine, match[0]) for match in pins.values()):
        return ""
    echo("  No registry of images is reached: base images are made of Debian's packages.")
    for name, match in pins.items():
        if not _is_there(engine, match["tag"]):
            with step(f"making {match['tag']}"):
                _make(engine, name, match["tag"])
    build = f'{{ build: {{ args: {{ PYTHON: "{pins["python"]["tag"]}" }} }} }}'
    images = {"postgres": "postgres", "roles": "postgres", "redis": "redis"}
    lines = [f'  {service}: {{ image: "{pins[name]["tag"]}" }}' for service, name in images.items()]
    return "\n".join(["services:", *lines, f"  migrate: {build}", ""])


def _is_there(engine: Engine, image: str) -> bool:
    try:
        return bool(engine.docker("image", "inspect", "--format", "{{.Id}}", image))
    except RuntimeError:
        return False


def _is_pulled(engine: Engine, image: str) -> bool:
    try:
        return bool(engine.docker("pull", "--quiet", image))
    except RuntimeError:
        return False


def _make(engine: Engine, name: str, tag: str) -> None:
    if shutil.which("debootstrap") is None:
        raise RuntimeError("Base images need a registry, or `debootstrap`.")
    suite, packages, entry, rest = _MADE[name]
    with tempfile.TemporaryDirectory(prefix="base-") as place:
        root = Path(place) / "root"
        _run(["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(root)])
        if entry:
            program = root / "usr/local/bin/entry"
            program.write_text(entry)
            program.chmod(0o755)
        if name == "python":
            (root / "usr/bin/python").symlink_to("python3")
            # Of this machine, so that a build reaches the packages as the machine does.
            for file in ("etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
                if (Path("/") / file).exists():
                    shutil.copy(Path("/") / file, root / file)
        if name == "postgres":
            _run(["chroot", str(root), "usermod", "-u", str(_POSTGRES_ID), "postgres"])
            shutil.rmtree(root / "var/lib/postgresql" / "18", ignore_errors=True)
        archive = Path(place) / "root.tar"
        _run(["tar", "-C", str(root), "--exclude=./var/cache/apt/*", "-cf", str(archive), "."])
        engine.docker("import", str(archive), f"{name}-root")
    # Options of `import` lack the signal to stop.
    engine.docker("build", "--tag", tag, "-", given="\n".join([f"FROM {name}-root", *rest, ""]))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout)[-500:]}")
