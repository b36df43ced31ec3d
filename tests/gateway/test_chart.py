"""What the Helm chart gives to whom, read from what Helm makes of each file of values."""

import shlex
from typing import Any

import pytest
import yaml
from django.db import connection

from devstack.chart import VALUES, rendered_chart
from devstack.files import PROJECT
from gateway.processes import USED_BY
from tests.gateway.test_container_files import SIGNER_CLIENTS, WITHOUT_SIGNER

Objects = dict[tuple[str, str], dict[str, Any]]
# Where pods are replaced one by one, no other pod stands in for them.
CALLERS = SIGNER_CLIENTS - {"web-meanwhile"}
OURS = CALLERS | WITHOUT_SIGNER


@pytest.fixture(scope="module", params=VALUES)
def rendered(request: pytest.FixtureRequest) -> Objects:
    """The objects of a file of values, by kind and by name without that of the release."""
    documents = yaml.load_all((rendered_chart() / f"{request.param}.yaml").read_text(), yaml.CSafeLoader)
    return {(one["kind"], one["metadata"]["name"].removeprefix("gateway-")): one for one in documents if one}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The services of compose.yaml."""
    services: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]
    return services


def test_every_file_of_values_is_rendered_and_what_helm_makes_of_it_is_valid() -> None:
    """It is rendered only if Helm's linter and Kubernetes' schemas accept it."""
    values = {path.stem for path in (PROJECT / "deploy/chart/values").glob("*.yaml")}
    assert {path.stem for path in rendered_chart().iterdir()} == values == set(VALUES)


def test_every_process_of_compose_is_there_with_its_command(
    rendered: Objects, compose: dict[str, Any]
) -> None:
    assert set(_pods(rendered)) - {"signer"} == OURS
    for name, pod in _pods(rendered).items():
        command = compose[name].get("command")
        assert pod["containers"][0].get("command") == (shlex.split(command) if command else None)


def test_a_process_is_named_and_gets_the_secrets_that_it_uses(rendered: Objects) -> None:
    absent = {"STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRETS", "METRICS_TOKEN"}
    for name in OURS:
        given = _variables(rendered, name)
        uses = {secret for secret, users in USED_BY.items() if name in users}
        assert given["GATEWAY_PROCESS"] == name
        assert set(given) & set(USED_BY) in (uses, uses - absent)
        assert not any(word in str(given) for word in ("RELAY_RELAYER", "RELAY_TREASURY", "KEYSTORE"))
        assert all(isinstance(given[secret], dict) for secret in {*USED_BY, "SECRET_KEY"} & set(given))


def test_only_migrations_and_erasures_connect_as_the_owner_of_the_tables(rendered: Objects) -> None:
    sources = {name: _variables(rendered, name)["DATABASE_URL"]["name"] for name in OURS}
    assert {name for name, source in sources.items() if source == "gateway-owner"} == {"migrate", "eraser"}


def test_only_the_relay_processes_reach_the_signer_and_use_tls(rendered: Objects) -> None:
    for name in OURS:
        variables = _variables(rendered, name)
        is_client = name in CALLERS
        assert variables.get("SIGNER_URL", "").startswith("https://") is is_client
        volumes = {volume["name"] for volume in _pods(rendered)[name]["volumes"]}
        assert volumes == ({"tmp", "signer-tls"} if is_client else {"tmp"})
    policy = rendered["NetworkPolicy", "signer"]["spec"]
    (rule,) = policy["ingress"]
    callers = {one["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for one in rule["from"]}
    assert callers == CALLERS


def test_the_signer_gets_nothing_of_the_others_and_there_is_one(rendered: Objects) -> None:
    if ("StatefulSet", "signer") not in rendered:
        assert "signer" not in _pods(rendered)
        return
    assert rendered["StatefulSet", "signer"]["spec"]["replicas"] == 1
    variables = _variables(rendered, "signer")
    assert variables["CHAIN_ID"] == _variables(rendered, "web")["CHAIN_ID"]
    assert all(name.startswith(("SIGNER_", "AWS_", "CHAIN", "RELAY_")) for name in variables)


def test_the_admin_has_a_host_name_of_its_own(rendered: Objects) -> None:
    hosts = {name: _variables(rendered, name)["ALLOWED_HOSTS"] for name in ("admin", "web")}
    assert len(set(hosts.values())) == 2


def test_every_pod_is_confined_bounded_and_reaches_nothing_that_no_policy_names(rendered: Objects) -> None:
    closed = rendered["NetworkPolicy", "closed"]["spec"]
    assert closed["policyTypes"] == ["Ingress", "Egress"]
    for name, pod in _pods(rendered).items():
        assert ("NetworkPolicy", name) in rendered
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert (pod["securityContext"]["runAsUser"], pod["automountServiceAccountToken"]) == (10001, False)
        assert set(container["resources"]) == {"requests", "limits"}
        if name != "migrate":
            assert "livenessProbe" in container


def test_an_outage_of_a_shared_dependency_does_not_make_all_pods_unready(rendered: Objects) -> None:
    for name in ("web", "admin"):
        (container,) = _pods(rendered)[name]["containers"]
        probes = [container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")]
        assert {probe["httpGet"]["path"] for probe in probes} == {"/healthz"}


def test_a_rollout_continues_only_once_a_process_without_a_port_works(
    rendered: Objects, compose: dict[str, Any]
) -> None:
    for name in ("worker-relay", "worker-default", "beat", "eraser"):
        (container,) = _pods(rendered)[name]["containers"]
        assert compose[name]["environment"]["ALIVE_FILE"] in container["startupProbe"]["exec"]["command"][-1]
        assert (
            container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] >= 60
        )
        assert "initialDelaySeconds" not in container["livenessProbe"]


def test_processes_that_bypass_the_pooler_do_not_get_its_setting(rendered: Objects) -> None:
    web = _variables(rendered, "web")
    is_pooled = web.get("DATABASE_POOLING") == "transaction"
    assert not any("DATABASE_POOLING" in _variables(rendered, name) for name in ("migrate", "eraser"))
    for kind, name in rendered:
        if kind == "TriggerAuthentication":
            (source,) = rendered[kind, name]["spec"]["secretTargetRef"]
            assert source["key"] == ("DATABASE_DIRECT_URL" if is_pooled else "DATABASE_URL")


def test_prometheus_may_scrape_a_pod_by_its_address(rendered: Objects) -> None:
    if not any(kind == "ServiceMonitor" for kind, _ in rendered):
        return
    names = list(_variables(rendered, "web"))
    assert _variables(rendered, "web")["ALLOWED_HOSTS"].endswith(",$(POD_IP)")
    # Kubernetes replaces only variables that are defined before.
    assert names.index("POD_IP") < names.index("ALLOWED_HOSTS")
    assert _variables(rendered, "web")["POD_IP"] == {"fieldPath": "status.podIP"}


def test_a_process_that_reports_or_sends_mail_reaches_the_ports_for_it(rendered: Objects) -> None:
    for name in sorted(OURS | {"signer"}):
        rules = rendered["NetworkPolicy", name]["spec"].get("egress") or []
        outside = [rule for rule in rules if "0.0.0.0/0" in str(rule.get("to"))]
        reports = name != "signer" and "SENTRY_DSN" in _variables(rendered, name)
        assert bool(outside) is (reports or name not in {"beat", "eraser"})
        assert all({"port": 443} in rule["ports"] and {"port": 587} in rule["ports"] for rule in outside)
    (dns,) = rendered["NetworkPolicy", "closed"]["spec"]["egress"]
    assert {(one["protocol"], one["port"]) for one in dns["ports"]} >= {("UDP", 53), ("UDP", 5353)}


def test_a_budget_leaves_one_of_several_pods(rendered: Objects) -> None:
    budgets = {name for kind, name in rendered if kind == "PodDisruptionBudget"}
    for name in budgets:
        replicas = rendered["Deployment", name]["spec"].get("replicas")
        scaled = rendered.get(("ScaledObject", name), {}).get("spec", {}).get("minReplicaCount")
        assert (replicas or scaled) > 1


@pytest.mark.django_db
def test_scaling_queries_run_against_the_database(rendered: Objects) -> None:
    scaled = [one for (kind, _), one in rendered.items() if kind == "ScaledObject"]
    for one in scaled:
        assert "replicas" not in rendered["Deployment", one["spec"]["scaleTargetRef"]["name"][8:]]["spec"]
        (trigger,) = one["spec"]["triggers"]
        with connection.cursor() as cursor:
            cursor.execute(trigger["metadata"]["query"])
            assert cursor.fetchall() == [(0,)]


def _pods(rendered: Objects) -> dict[str, dict[str, Any]]:
    kinds = ("Deployment", "StatefulSet", "Job")
    return {name: one["spec"]["template"]["spec"] for (kind, name), one in rendered.items() if kind in kinds}


def _variables(rendered: Objects, name: str) -> dict[str, Any]:
    """Return the environment of a process; of what comes from a secret, where from."""
    (container,) = _pods(rendered)[name]["containers"]
    return {
        one["name"]: one["value"] if "value" in one else next(iter(one["valueFrom"].values()))
        for one in container["env"]
    }
