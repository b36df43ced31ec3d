"""Health, documentation and settings of the whole."""

import gzip
import importlib
import os
import runpy
import secrets
import subprocess
import sys
from inspect import signature
from types import ModuleType
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import structlog
from axes.helpers import get_client_ip_address
from celery import Celery, signals
from celery.schedules import crontab
from django.conf import settings
from django.test import Client, RequestFactory
from django_structlog.celery.steps import DjangoStructLogInitStep
from drf_spectacular.generators import SchemaGenerator
from kombu.exceptions import OperationalError

import gateway.settings
from devstack.ports import free_port
from devstack.services.stack import Services
from gateway.celery import app
from gateway.processes import RANDOM


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/docs", "/api/docs/"])
def test_the_documentation_loads_nothing_from_elsewhere(path: str) -> None:
    page = Client().get(path).content.decode()

    assert "/static/drf_spectacular_sidecar/" in page
    assert "https://" not in page.replace("https://github.com", "")


def test_a_host_that_is_not_ours_is_refused_as_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["gateway.example"])
    refused = Client().get("/api/auth/me", headers={"host": "elsewhere.example"})

    assert refused.status_code == 400
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["code"] == "invalid-request"
    assert "elsewhere" not in refused.content.decode()
    assert "The Host header" in refused.json()["detail"]


def test_no_task_is_routed_to_the_worker_of_relay_calls() -> None:
    app.loader.import_default_modules()
    names = [name for name in app.tasks if not name.startswith(("celery.", "tests."))]

    assert {app.amqp.router.route({}, name)["queue"].name for name in names} == {"default"}


@pytest.mark.parametrize("path", ["/api/auth/nonce", "/api/lsp15/quota", "/.well-known/jwks.json"])
def test_options_names_the_methods_and_nothing_from_inside(path: str) -> None:
    response = Client().options(path)

    assert response.status_code == 200
    assert set(response.json()) == {"methods"}
    assert ", ".join(response.json()["methods"]) == response.headers["Allow"]


def test_the_admin_is_found_without_its_slash() -> None:
    assert Client().get("/admin").headers["Location"] == "/admin/"


def test_the_description_names_every_path_of_the_contract() -> None:
    paths = Client().get("/api/openapi.json").json()["paths"]

    assert {"/api/relay/execute", "/api/relay/quota", "/api/relay/transactionStatus"} <= set(paths)


def test_the_description_is_made_once_and_may_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Client().get("/api/openapi.json")
    monkeypatch.setattr(SchemaGenerator, "get_schema", None)

    again = Client().get("/api/openapi.json")

    assert again.content == first.content
    assert again.headers["Content-Type"] == "application/vnd.oai.openapi+json"
    assert again.headers["Cache-Control"] == "public, max-age=300"


def test_the_description_is_compressed_for_clients_that_accept_it() -> None:
    plain = Client().get("/api/openapi.json")

    compressed = Client().get("/api/openapi.json", headers={"Accept-Encoding": "gzip"})

    assert compressed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.content) == plain.content


@pytest.mark.parametrize(
    ("level", "quieter"), [("DEBUG", "INFO"), ("INFO", "WARNING"), ("WARNING", "WARNING"), ("ERROR", "ERROR")]
)
def test_clients_of_others_are_a_level_quieter_and_keep_their_debug_lines(level: str, quieter: str) -> None:
    loggers = settings_with(LOG_LEVEL=level).LOGGING["loggers"]

    assert {name: options["level"] for name, options in loggers.items() if "level" in options} == {
        "urllib3": quieter,
        "stripe": quieter,
    }


@pytest.mark.parametrize(
    "name",
    [
        "LOG_LEVEL",
        "TRACING_PERCENT",
        "AUTH_EXTERNAL_JWKS_URL",
        "AUTH_RATE",
        "RELAY_EXECUTE_RATE",
        "LSP15_RATE",
        "SPONSOR_CREATE_RATE",
    ],
)
def test_a_malformed_variable_stops_the_process_at_start_and_is_named(name: str) -> None:
    with pytest.raises(SystemExit, match=name):
        settings_with(**{name: "101 bananas"})


@pytest.mark.parametrize("name", RANDOM)
def test_a_secret_is_long_and_has_one_purpose(name: str) -> None:
    key = secrets.token_hex(32)
    with pytest.raises(SystemExit, match=f"{name} must not be SECRET_KEY"):
        settings_with(SECRET_KEY=key, **{name: key})
    with pytest.raises(SystemExit, match=f"{name} needs at least 32 characters"):
        settings_with(**{name: key[:31]})


def test_a_percentage_above_100_is_refused_and_not_taken_for_100() -> None:
    assert settings_with(TRACING_PERCENT="100").TRACING_PERCENT == 100
    with pytest.raises(SystemExit, match="TRACING_PERCENT must be at most 100"):
        settings_with(TRACING_PERCENT="101")


def schedule_with(*, stripe_key: str = "sk_test_x", **environment: str) -> dict[str, dict[str, Any]]:
    """Return what beat sends, by task."""
    entries = settings_with(STRIPE_SECRET_KEY=stripe_key, **environment).CELERY_BEAT_SCHEDULE.values()
    schedule = {entry["task"]: entry for entry in entries}
    assert len(schedule) == len(entries)
    return schedule


def test_beat_sends_every_task_that_is_about_no_row_in_particular() -> None:
    app.loader.import_default_modules()
    ours = {name: task for name, task in app.tasks.items() if not name.startswith(("celery.", "tests."))}
    without_ids = {
        name
        for name, task in ours.items()
        if all(
            parameter.kind is parameter.VAR_KEYWORD for parameter in signature(task.run).parameters.values()
        )
    }
    assert set(schedule_with()) == without_ids


def test_without_a_key_of_stripe_nothing_is_compared_with_stripe() -> None:
    missing = set(schedule_with()) - set(schedule_with(stripe_key=""))
    assert missing == {"payments.claw_back", "payments.reconcile"}


def test_messages_of_intervals_expire_but_later_than_clocks_differ() -> None:
    intervals = {
        task: (entry["schedule"], entry["options"]["expires"])
        for task, entry in schedule_with().items()
        if not isinstance(entry["schedule"], crontab)
    }
    assert len(intervals) > 10
    for task, (seconds, expires) in intervals.items():
        assert max(seconds, 600) <= expires <= 3600, task


def test_of_the_relay_beat_keeps_only_the_nightly_comparison() -> None:
    assert {task for task in schedule_with() if task.startswith("relay.")} == {"relay.reconcile"}


def test_a_worker_waits_for_its_broker_however_long_that_takes() -> None:
    assert app.conf.broker_connection_max_retries is None
    assert app.conf.broker_connection_retry_on_startup is True


def test_nightly_tasks_run_one_after_the_other_and_catch_up_before_they_compare() -> None:
    # The stubs do not know the sets of hours and minutes.
    times: dict[str, Any] = {task: entry["schedule"] for task, entry in schedule_with().items()}
    nightly = {task for task, time in times.items() if isinstance(time, crontab)}
    minutes = {task: min(times[task].hour) * 60 + min(times[task].minute) for task in nightly}
    order = sorted(minutes, key=lambda task: minutes[task])
    assert len(set(minutes.values())) == len(minutes)
    before, after = ["payments.refresh_subscriptions", "payments.claw_back"], "payments.reconcile"
    assert all(order.index(task) < order.index(after) for task in before)
    assert {"credits.reconcile", "relay.reconcile", after} <= set(order)


def test_statements_time_out_after_fifteen_seconds_by_default() -> None:
    assert "statement_timeout=15s" in settings_with().DATABASES["default"]["OPTIONS"]["options"]
    unlimited = settings_with(DATABASE_STATEMENT_TIMEOUT_SECONDS="0")
    assert "statement_timeout=0s" in unlimited.DATABASES["default"]["OPTIONS"]["options"]


@pytest.mark.parametrize(
    ("pooling", "options", "threshold"), [("session", True, 5), ("transaction", False, None)]
)
def test_a_pooler_of_transactions_gets_no_options_and_no_prepared_statements(
    pooling: str, options: bool, threshold: int | None
) -> None:
    database = settings_with(DATABASE_POOLING=pooling).DATABASES["default"]
    assert ("options" in database["OPTIONS"]) == options
    assert database["OPTIONS"]["prepare_threshold"] == threshold
    assert database["DISABLE_SERVER_SIDE_CURSORS"] == (not options)


def test_defaults_of_the_database_do_not_change_what_statements_mean(services: Services) -> None:
    name = f"odd_{secrets.token_hex(4)}"
    with psycopg.connect(services.postgres.url("postgres"), autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}")
        try:
            owner.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
            owner.execute(f"ALTER DATABASE {name} SET DateStyle = 'German'")
            database = settings_with(DATABASE_URL=services.postgres.url(name)).DATABASES["default"]
            options = {key: value for key, value in database["OPTIONS"].items() if key != "pool"}
            with psycopg.connect(
                host=database["HOST"], user=database["USER"], dbname=name, **options
            ) as session:
                assert session.execute("SHOW transaction_isolation").fetchone() == ("read committed",)
                # The driver reads a time in no style but this.
                assert session.execute("SHOW DateStyle").fetchone() == ("ISO, MDY",)
        finally:
            owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_every_parameter_of_the_database_url_reaches_the_driver_and_its_options_take_precedence(
    services: Services,
) -> None:
    place = services.postgres.url("postgres")
    given = quote("-c search_path=relay -c work_mem=12MB -c lock_timeout=4s")
    parameters = f"&application_name=a%20name&keepalives_idle=77&options={given}"
    database = settings_with(DATABASE_URL=place + parameters).DATABASES["default"]
    options = {name: value for name, value in database["OPTIONS"].items() if name != "pool"}
    assert options["keepalives_idle"] == "77"
    with psycopg.connect(
        host=database["HOST"], user=database["USER"], dbname="postgres", **options
    ) as session:
        found = dict(
            session.execute("SELECT name, setting || coalesce(unit, '') FROM pg_settings").fetchall()
        )
    expected = {
        "search_path": "relay",
        "work_mem": "12288kB",
        "application_name": "a name",
        "statement_timeout": "15000ms",
        "lock_timeout": "4000ms",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("name", ["DATABASE_URL", "DATABASE_REPLICA_URL"])
@pytest.mark.parametrize(
    ("url", "environment", "refusal"),
    [
        ("postgresql://db:5433", {}, "must name a database"),
        ("postgresql://db/gateway?client_encoding=latin1", {}, "must not set client_encoding"),
        (
            "postgresql://db/gateway?options=-c%20work_mem%3D9MB",
            {"DATABASE_POOLING": "transaction"},
            "must not set options",
        ),
        ("postgresql://db/gateway?work_mem=9MB", {}, "must be a libpq connection string"),
    ],
)
def test_a_database_url_that_cannot_be_honoured_stops_the_process(
    name: str, url: str, environment: dict[str, str], refusal: str
) -> None:
    with pytest.raises(SystemExit, match=f"{name} {refusal}"):
        settings_with(**environment, **{name: url})


@pytest.mark.parametrize("host", ["smtp.example:465", "smtp://smtp.example", "user@smtp.example"])
def test_a_mail_server_with_more_than_its_host_stops_the_process(host: str) -> None:
    with pytest.raises(SystemExit, match="EMAIL_HOST must be a host name"):
        settings_with(EMAIL_HOST=host)


def test_the_session_for_notifications_is_kept_open_like_the_others() -> None:
    direct = settings_with(DATABASE_DIRECT_URL="postgresql://db/gateway?connect_timeout=9").DATABASE_DIRECT
    assert (direct["host"], direct["connect_timeout"], direct["tcp_user_timeout"]) == ("db", "9", 10_000)
    assert settings_with().DATABASE_DIRECT == {}


def test_statements_wait_ten_seconds_for_a_lock() -> None:
    loaded = settings_with()
    assert loaded.DATABASE_ROLE_LIMITS["lock_timeout"] == "3s"
    assert "lock_timeout=3s" in loaded.DATABASES["default"]["OPTIONS"]["options"]


def test_a_management_command_may_take_as_long_as_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "DATABASE_STATEMENT_TIMEOUT_SECONDS"
    monkeypatch.setenv(name, "")
    monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "argv", ["manage.py", "version"])

    runpy.run_path(str(settings.BASE_DIR / "manage.py"), run_name="__main__")

    options = settings_with(**{name: os.environ[name]}).DATABASES["default"]["OPTIONS"]["options"]
    assert "statement_timeout=0s" in options


def test_staff_are_locked_out_by_the_address_that_the_proxy_saw(rf: RequestFactory, settings: Any) -> None:
    settings.TRUSTED_PROXY_COUNT = 1
    request = rf.post("/admin/login/", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.9")

    assert get_client_ip_address(request) == "203.0.113.9"
    assert get_client_ip_address(rf.post("/admin/login/", HTTP_X_FORWARDED_FOR="unknown")) is None


def test_a_worker_keeps_the_request_id_and_logs_in_the_configured_format() -> None:
    assert DjangoStructLogInitStep in app.steps["worker"]
    assert signals.setup_logging.receivers


def test_a_message_without_a_broker_is_lost_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    # Celery's transport would wait between one try and the next.
    monkeypatch.setattr("kombu.utils.functional.sleep", pauses.append)
    with Celery(broker=f"redis://127.0.0.1:{free_port()}/0", set_as_current=False) as publisher:
        publisher.conf.broker_transport_options = settings.CELERY_BROKER_TRANSPORT_OPTIONS
        with pytest.raises(OperationalError):
            publisher.send_task("earnings.release", retry=False)

    assert pauses == []


def settings_with(**environment: str) -> ModuleType:
    """Return the settings as another process with this environment would read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", lambda **_: None)
        patch.setattr(gateway, "settings", gateway.settings)
        for module in [name for name in sys.modules if name.startswith("gateway.settings")]:
            patch.delitem(sys.modules, module)
        for name in ("LOG_LEVEL", "DATABASE_POOLING", "DATABASE_STATEMENT_TIMEOUT_SECONDS", "METRICS_TOKEN"):
            patch.delenv(name, raising=False)
        for name, text in environment.items():
            patch.setenv(name, text)
        return importlib.import_module("gateway.settings")


def test_deeply_nested_json_is_an_error_and_ends_no_process() -> None:
    # A library raises the recursion limit when it is imported, and then the JSON parser overflows the C stack.
    code = (
        "import json\n"
        "import django\n"
        "for load in (django.setup, lambda: __import__('signer.server')):\n"
        "    load()\n"
        "    try:\n"
        "        json.loads('[' * 200_000)\n"
        "    except RecursionError:\n"
        "        print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("refused\n" * 2, 0)
