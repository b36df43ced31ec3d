"""The system checks of each process demand no secret that the process must not be given."""

import pytest
from django.core.checks import ERROR, CheckMessage, run_checks
from pytest_django import Settings

from gateway.processes import PROCESSES, USED_BY, withheld
from tests.gateway.test_wiring import settings_with


def _reported(settings: Settings, process: str) -> list[CheckMessage]:
    """Return what the checks report in a process that has its own secrets only, and Stripe's key if it uses it."""
    if "STRIPE_SECRET_KEY" in withheld(process):
        settings.STRIPE_SECRET_KEY = ""
    settings.WITHHELD_SECRETS = withheld(process)
    for name in settings.WITHHELD_SECRETS:
        setattr(settings, name, type(getattr(settings, name, ""))())
    return run_checks(include_deployment_checks=True, databases=["default"])


@pytest.mark.django_db
@pytest.mark.parametrize("process", [name for name in PROCESSES if name != "build"])
def test_a_process_passes_the_checks_without_the_secrets_of_others(settings: Settings, process: str) -> None:
    reported = _reported(settings, process)

    assert [message for message in reported if message.level >= ERROR] == []
    assert [message for message in reported if any(name in message.msg for name in withheld(process))] == []


@pytest.mark.parametrize("process", ["admin", "web"])
def test_the_description_of_the_api_is_checked_if_it_exists(process: str) -> None:
    given = {**dict.fromkeys(withheld(process), ""), "GATEWAY_PROCESS": process}

    described = settings_with(**given).SPECTACULAR_SETTINGS

    assert described["ENABLE_DJANGO_DEPLOY_CHECK"] is (process != "admin")


@pytest.mark.parametrize("secret", ["AUTH_SIGNING_KEYS", "AUTH_REFRESH_SECRET", "CHECKIN_SEED_SECRETS"])
def test_a_process_that_uses_a_secret_does_not_start_without_it(secret: str) -> None:
    assert "web" in USED_BY[secret]
    given = {**dict.fromkeys(withheld("web"), ""), "GATEWAY_PROCESS": "web", secret: ""}

    with pytest.raises(SystemExit, match=f"Set the environment variable {secret} or {secret}_FILE"):
        settings_with(**given)
