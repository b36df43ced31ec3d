"""`make record-release` runs these as tests: they write what `devstack.releases` restores."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from devstack import releases
from devstack.services.postgres import APPLICATION_ROLE
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from tests.database import OWNER, connect_as
from tests.factories import make
from tests.relay.conftest import Accept, Settle
from tests.relay.quoting import prepare
from tests.relay.signing import sign_call
from tests.relay.sponsoring import execute_sponsored
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)
_OURS = [config for config in apps.get_app_configs() if "site-packages" not in config.path]
_OF_A_CALL = re.compile(r"\bSELECT .*\brelay_(take_slots|insert_calls)\(")


def _url(services: Services) -> str:
    return services.postgres.url(str(connection.settings_dict["NAME"]), role=OWNER)


def test_record_a_new_database(services: Services) -> None:
    releases.record(releases.NEW, _url(services))


def test_record_a_used_database_and_a_call(
    services: Services,
    profile: Profile,
    user: User,
    accept: Accept,
    settle: Settle,
    create_profile: Callable[..., Profile],
    open_account: Callable[..., User],
) -> None:
    accept()
    settle()
    # In flight: a call with a follower, and one that a sponsor pays. One more is prepared.
    accept(ahead=0)
    accept(ahead=1)
    guests = create_profile()
    guest, sponsor = open_account(guests, credits=1), make_sponsor()
    make_policy(sponsor)
    execute_sponsored(guest, sign_call(services=services, profile=guests), sponsor)
    prepare(user, profile, channel=1)
    connect_as(OWNER)
    for model in (model for config in _OURS for model in config.get_models()):
        if not (model._meta.proxy or model._default_manager.exists()):
            make(model)
    connect_as(APPLICATION_ROLE)
    releases.record(releases.USED, _url(services))

    statements: list[tuple[str, dict[str, Any]]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if _OF_A_CALL.search(sql):
            statements.append((sql, dict(params)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        accept(channel=2)
    releases.record_call(statements)
