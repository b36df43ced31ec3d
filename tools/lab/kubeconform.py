"""
Kubeconform on the rendered chart, by the schemas of Kubernetes' own source instead of a web server's.

Its program is built by Go (`go install github.com/yannh/kubeconform/cmd/kubeconform@latest`), and the source is a
module that Go fetches.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from devstack.chart import KUBERNETES, rendered_chart
from devstack.console import echo
from devstack.files import DATA

_SOURCE = f"k8s.io/kubernetes@v{KUBERNETES}.0"
_DEFINITIONS = "definitions.json"
_MAY_BE_NUMBER_OR_TEXT = {"io.k8s.apimachinery.pkg.util.intstr.IntOrString"}


class NotAtHand(RuntimeError):
    """Kubeconform or Go is missing, or Go cannot fetch the source; the message says which."""


def check() -> list[str]:
    """
    Return what kubeconform finds in the rendered files.

    Raises:
        NotAtHand: it cannot be run.
    """
    program = shutil.which("kubeconform")
    if program is None:
        raise NotAtHand("`kubeconform` is not installed")
    location = f"{_schemas()}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    done = subprocess.run(
        [
            program,
            "-strict",
            "-summary",
            "-ignore-missing-schemas",
            "-schema-location",
            location,
            str(rendered_chart()),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    *findings, summary = done.stdout.strip().splitlines() or [done.stderr]
    echo(f"  kubeconform: {summary}")
    return [*findings, *([summary] if done.returncode and not findings else [])]


def _schemas() -> Path:
    """Return a folder with a schema for each kind, made once from the source's description of its API."""
    folder = DATA / "lab" / "kubernetes" / KUBERNETES
    if not (folder / _DEFINITIONS).exists():
        write_schemas(json.loads((_source() / "api/openapi-spec/swagger.json").read_text()), folder)
    return folder


def _source() -> Path:
    go = shutil.which("go")
    if go is None:
        raise NotAtHand("there is no Go to fetch Kubernetes' source")
    done = subprocess.run(
        [go, "mod", "download", "-json", _SOURCE], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotAtHand(f"Go cannot fetch {_SOURCE}: {(done.stderr or done.stdout).strip()[-200:]}")
    return Path(json.loads(done.stdout)["Dir"])


def write_schemas(description: dict[str, Any], folder: Path) -> None:
    """Write the definitions of an OpenAPI document, closed to unknown members, and a file for each kind in them."""
    folder.mkdir(parents=True, exist_ok=True)
    definitions = {name: _closed(name, schema) for name, schema in description["definitions"].items()}
    for name, schema in description["definitions"].items():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            group = kind["group"].split(".")[0]
            file = "-".join(filter(None, (kind["kind"], group, kind["version"]))).lower()
            (folder / f"{file}.json").write_text(json.dumps({"$ref": f"{_DEFINITIONS}#/definitions/{name}"}))
    text = json.dumps({"definitions": definitions})
    (folder / _DEFINITIONS).write_text(text)


def _closed(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    if name in _MAY_BE_NUMBER_OR_TEXT:
        return {"oneOf": [{"type": "string"}, {"type": "integer"}]}
    if "properties" in schema and "additionalProperties" not in schema:
        return schema | {"additionalProperties": False}
    return schema
