"""
`python -m lab chart`: Helm's own program lints and renders the chart, and must render what `make chart` renders.

It runs where `helm` is at hand, and kubeconform too where that is. `make chart`, which embeds the same library,
validates by Kubernetes' schemas.
"""

import shutil
import subprocess
from typing import Any

import yaml

from devstack.chart import CHART, KUBERNETES, NAME, NAMESPACE, VALUES, rendered_chart
from devstack.console import echo, echo_error
from lab import kubeconform

_NOT_RUN = 2
Objects = dict[tuple[str, str], dict[str, Any]]


def run() -> int:
    """Return 1 if Helm reports or renders anything else, 2 if it is not at hand."""
    if shutil.which("helm") is None:
        echo("✗ Not run: `helm` is not installed.")
        return _NOT_RUN
    wrong = [f"{name}: {one}" for name in VALUES for one in _differences(name)]
    try:
        wrong += kubeconform.check()
    except kubeconform.NotAtHand as missing:
        echo(f"  kubeconform: not run, because {missing}")
    for complaint in wrong:
        echo_error(f"✗ {complaint}")
    return int(bool(wrong))


def _differences(name: str) -> list[str]:
    values = CHART / "values" / f"{name}.yaml"
    linted = _helm("lint", "--strict", str(CHART), "--values", str(values))
    if linted.returncode:
        return [linted.stdout.strip()]
    options = ("--namespace", NAMESPACE, "--kube-version", KUBERNETES, "--values", str(values))
    template = _helm("template", NAME, str(CHART), *options)
    if template.returncode:
        return [template.stderr.strip()]
    theirs, ours = _objects(template.stdout), _objects((rendered_chart() / f"{name}.yaml").read_text())
    differing = sorted(key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key))
    echo(f"  {name}: {len(theirs)} objects, {len(differing)} differ from those of `make chart`")
    return [f"{kind} {own} differs" for kind, own in differing]


def _helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, check=False)


def _objects(text: str) -> Objects:
    documents = yaml.load_all(text, yaml.CSafeLoader)
    return {(one["kind"], one["metadata"]["name"]): one for one in documents if one}
