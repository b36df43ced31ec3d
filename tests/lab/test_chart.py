"""`python -m lab chart`, with a program in the place of Helm."""

import json
import os
from pathlib import Path

import pytest

from devstack.chart import rendered_chart
from lab import chart, kubeconform

# Prints the rendered text, with one change in the middle.
_HELM = """#!/bin/sh
[ "$1" != lint ] || exit 0
for word; do case "$word" in *.yaml) name=$(basename "$word") ;; esac; done
sed "s/CHANGED_FROM/CHANGED_TO/" "FOLDER/$name"
"""


def _helm(folder: Path, monkeypatch: pytest.MonkeyPatch, *, changed: str, to: str) -> None:
    program = folder / "helm"
    text = _HELM.replace("CHANGED_FROM", changed).replace("CHANGED_TO", to)
    program.write_text(text.replace("FOLDER", str(rendered_chart())))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.defpath}")


def test_without_helm_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert chart.run() == 2
    assert "Not run: `helm` is not installed" in capsys.readouterr().out


def test_the_same_objects_pass_and_another_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _helm(tmp_path, monkeypatch, changed="nothing of this", to="")
    assert chart.run() == 0

    _helm(tmp_path, monkeypatch, changed="maxUnavailable: 0", to="maxUnavailable: 1")
    assert chart.run() == 1
    assert "small: Deployment gateway-web differs" in capsys.readouterr().err


def test_kubeconforms_schemas_are_closed_and_named_by_kind_group_and_version(tmp_path: Path) -> None:
    kinds = [{"group": "apps.example.org", "version": "v1", "kind": "Deployment"}]
    definitions = {
        "a": {"properties": {"spec": {"$ref": "#/definitions/b"}}, "x-kubernetes-group-version-kind": kinds},
        "b": {"type": "object", "additionalProperties": {"type": "string"}},
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
    }

    kubeconform.write_schemas({"definitions": definitions}, tmp_path)

    (kind,) = set(tmp_path.iterdir()) - {tmp_path / "definitions.json"}
    assert kind.name == "deployment-apps-v1.json"
    assert json.loads(kind.read_text()) == {"$ref": "definitions.json#/definitions/a"}
    written = json.loads((tmp_path / "definitions.json").read_text())["definitions"]
    assert written["a"]["additionalProperties"] is False
    assert written["b"] == definitions["b"]
    assert {"type": "integer"} in written["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["oneOf"]
