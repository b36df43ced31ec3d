"""
Requests made at random from the API's description, valid and invalid, with every kind of token.

Whatever is sent: no 5xx, nothing that the description does not name, nothing of another user's, and nothing of
another user's changes. The suite makes some hundred requests; FUZZ_CASES=50000 makes more.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import uuid4

import pytest
import schemathesis
import yaml
from django.conf import settings as settings_of_django
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, connection, transaction
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from devstack.services.stack import Services
from devstack.world.profiles import Profile, ProfilePlan
from gateway.chain.signing import get_signer
from payments.stripe import set_billing_client
from relay.models import RelayTransaction
from relay.services.fleet import relayers
from sponsors.models import Member
from tests.credits.rows import query
from tests.docs.pages import DOCS
from tests.earnings.ad_networks import SLUGS, set_up
from tests.examples import resolved
from tests.factories import UserFactory
from tests.gateway import hostile
from tests.gateway.hostile import Hostile
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DoubleAccount
from tests.portal.history_rows import earned, relayed
from tests.sponsors.sponsorships import make_sponsor
from tests.users.forged_tokens import forged_token
from tests.users.trusted import trust_code
from users.models import SignInSession, User
from users.services import sessions, sign_in
from users.services.sessions import TokenPair

CASES = int(os.environ.get("FUZZ_CASES", "100"))
LYX = 10**18
NEVER = "1000000000/second"
REFUSED = {
    "none": "not-authenticated",
    "expired": "access-token-expired",
    "tampered": "access-token-signature-invalid",
}

_DESCRIPTION = yaml.load((DOCS / "openapi.yaml").read_text(), Loader=yaml.CSafeLoader)
# Tokens are put in by the tests: a random one would be refused before anything else is looked at.
WITH_TOKEN = {
    operation["operationId"]
    for path in _DESCRIPTION["paths"].values()
    for operation in path.values()
    if any("accessToken" in kind for kind in operation.pop("security", []))
}
OPERATIONS = [
    operation.ok()
    for operation in schemathesis.openapi.from_dict(_DESCRIPTION).get_all_operations()
    if isinstance(operation, Ok)
]
TABLES = ("credits_account", "relay_relaytransaction", "payments_subscription", "users_signinsession")
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@dataclass
class Person:
    """A user with something of every kind, and all that no other user may read."""

    profile: Profile
    user: User
    pair: TokenPair
    challenge: str
    hashes: list[str]
    names: set[str] = field(repr=False)

    @property
    def on_chain(self) -> set[str]:
        """The addresses, in lower case, that the chain ties to one another."""
        profile = self.profile
        addresses = (profile.profile_address, profile.key_manager_address, profile.controller.address)
        return {address.lower() for address in addresses}

    def token(self, *, expires_in: timedelta = timedelta(days=1)) -> str:
        """Return an access token of the person's session that outlives the test, or one from the past."""
        session = SignInSession.objects.get(user=self.user)
        return forged_token(
            sub=str(self.user.pk),
            address=self.user.profile_address,
            sid=str(session.pk),
            ctl=session.controller_address,
            iat=int((timezone.now() - timedelta(hours=1)).timestamp()),
            exp=int((timezone.now() + expires_in).timestamp()),
        )

    def rows(self) -> list[Any]:
        """Return what others must not change."""
        parts = (f"SELECT t::text FROM {table} AS t WHERE user_id = {self.user.pk}" for table in TABLES)  # noqa: S608
        return query(" UNION ALL ".join(parts) + " ORDER BY 1")


@dataclass
class World:
    """Two users, and the path of each ad network."""

    person: Person
    other: Person
    paths: list[dict[str, str]]

    @cached_property
    def values(self) -> dict[str, list[str]]:
        """Return, by the name of a member, values that lead further than random ones."""
        both = (self.person, self.other)
        return {
            "transactionHash": [name for person in both for name in person.hashes],
            "address": [person.profile.profile_address for person in both],
            "keyManagerAddress": [person.profile.key_manager_address for person in both],
            "refresh": [person.pair.refresh for person in both],
            "nonce": [person.challenge for person in both],
        }


@pytest.fixture
def world(services: Services, settings: Any, db: None) -> Iterator[World]:
    """Two users of a service whose rate limits are lifted, with the real node and the Stripe double behind it."""
    for name in dir(settings_of_django):
        if name.endswith("_RATE") and isinstance(getattr(settings_of_django, name), str):
            setattr(settings, name, NEVER)
    settings.STRIPE_SECRET_KEY = services.stripe.secret_key
    settings.STRIPE_API_BASE = services.stripe.url
    set_billing_client(None)
    double = DoubleAccount(services.stripe)
    double.controls.set_webhook_endpoint(None, "")
    double.controls.reset()
    services.world.fund(100 * LYX, *get_signer().addresses())
    relayers.sync(now=timezone.now())
    code = services.world.implementations
    trust_code(profile=code.universal_profile, key_manager=code.key_manager)
    people = [
        _person(profile, double) for profile in services.world.create_profiles(ProfilePlan(), ProfilePlan())
    ]
    paths = [{"network": slug, "token": set_up(slug).token} for slug in SLUGS]
    # As Django's own test client does: the connection has the test's transaction open.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield World(people[0], people[1], paths)
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)
    set_billing_client(None)


def _person(profile: Profile, double: DoubleAccount) -> Person:
    user = UserFactory.create(profile_address=profile.profile_address)
    earned(user, 3)
    relayed(user, 3)
    payer = Payer(double, user).with_card()
    subscription = payer.upsert(2_500)
    now = timezone.now()
    challenge = sign_in.issue_challenge(profile_address=profile.profile_address, client="somebody", now=now)
    pair = sessions.start(
        profile_address=profile.profile_address, controller=profile.controller.address, now=now
    )
    hashes = list(RelayTransaction.objects.filter(user=user).values_list("transaction_hash", flat=True))
    names = {
        profile.profile_address,
        profile.key_manager_address,
        profile.controller.address,
        challenge.nonce,
        pair.refresh,
        payer.customer.stripe_customer_id,
        subscription.stripe_subscription_id,
        *hashes,
    }
    return Person(profile, user, pair, challenge.nonce, hashes, {name.lower() for name in names})


@contextmanager
def _forgotten() -> Iterator[None]:
    """Roll back what happens inside, after the constraints have been checked that are checked at commit."""
    block: Any = transaction.atomic()
    block._from_testcase = True  # services may begin transactions of their own inside
    with block:
        yield
        connection.check_constraints()
        transaction.set_rollback(True)


@st.composite
def _cases(draw: st.DrawFn, requests: st.SearchStrategy[Any], world: World) -> Any:
    """Draw a request; some of its members name what exists."""
    case = draw(requests)
    if isinstance(case.body, dict):
        named = [name for name in world.values if name in case.body and draw(st.booleans())]
        case.body = {**case.body, **{name: draw(st.sampled_from(world.values[name])) for name in named}}
    if "{network}" in case.operation.path and draw(st.booleans()):
        case.path_parameters = draw(st.sampled_from(world.paths))
    return case


class Sender:
    """Sends requests to the service in this process, and judges every response."""

    def __init__(self, world: World) -> None:
        self.codes: Counter[str] = Counter()
        self._world = world
        self._application = get_wsgi_application()

    def send(
        self, operation: Any, mode: GenerationMode, *, tokens: dict[str, str | None], cases: int
    ) -> None:
        """Send this number of requests, each with the token of every reader."""

        @settings(
            max_examples=cases,
            deadline=None,
            database=None,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=_cases(operation.as_strategy(generation_mode=mode), self._world))
        def judge(case: Any) -> None:
            for reader, token in tokens.items():
                with _forgotten():
                    self._judge(case, token, reader)

        judge()

    def _judge(self, case: Any, token: str | None, reader: str) -> None:
        is_theirs = case.operation.definition.raw["operationId"] in WITH_TOKEN
        bystander = self._world.person if reader == "other" else self._world.other
        before = bystander.rows() if is_theirs else []
        headers = {"Authorization": f"Bearer {token}"} if token is not None and is_theirs else {}
        response = case.call(app=self._application, headers=headers)
        case.validate_response(response, checks=CHECKS)
        code = _problem_code(response)
        where = f"{case.operation.label}: {code}, {response.text[:300]}"
        assert code in _documented(case.operation, response.status_code), where
        if is_theirs:
            assert response.status_code != 401 or code == REFUSED.get(reader, "timestamp-out-of-window"), (
                where
            )
            assert response.status_code == 401 or reader not in REFUSED, where
        sent = f"{response.request.url} {response.request.body!r}".lower()
        shown = response.text.lower()
        if bystander.pair.refresh.lower() not in sent:  # it signs its holder in as them
            # Any of the three addresses leads to the others on the chain.
            public = bystander.on_chain if any(name in sent for name in bystander.on_chain) else set()
            unknown = bystander.names - public
            assert [name for name in unknown if name in shown and name not in sent] == [], where
        assert (bystander.rows() if is_theirs else []) == before, where
        self.codes[f"{response.status_code} {code}".strip()] += 1


def _problem_code(answer: Any) -> str:
    is_problem = answer.headers.get("content-type", [""])[0].startswith("application/problem+json")
    return str(json.loads(answer.text)["code"]) if is_problem else ""


def _documented(operation: Any, status: int) -> set[str]:
    content = resolved(_DESCRIPTION, operation.definition.raw["responses"][str(status)])["content"]
    examples = content.get("application/problem+json", {}).get("examples", {})
    codes = {example["$ref"].rpartition("/")[2] for example in examples.values()}
    return codes | ({""} if content.keys() - {"application/problem+json"} else set())


@pytest.mark.timeout(max(900, CASES))
def test_random_requests_cause_no_internal_error_and_reach_no_other_users_data(world: World) -> None:
    sender = Sender(world)
    for operation in OPERATIONS:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.POSITIVE or _has_input(operation):
                sender.send(operation, mode, tokens={"person": world.person.token()}, cases=_cases_each())
    print(sum(sender.codes.values()), "requests:", dict(sender.codes.most_common()))  # noqa: T201
    assert sum(sender.codes.values()) >= CASES / 2


def test_every_operation_shows_each_token_only_its_own_data(world: World) -> None:
    sender = Sender(world)
    tokens = {
        "none": None,
        "expired": world.person.token(expires_in=-timedelta(minutes=5)),
        "other": world.other.token(),
        "tampered": world.person.token()[:-8] + "AAAAAAAA",
    }
    for operation in OPERATIONS:
        cases = max(1, CASES // (20 * len(OPERATIONS)))
        sender.send(operation, GenerationMode.POSITIVE, tokens=tokens, cases=cases)
    print(sum(sender.codes.values()), "requests:", dict(sender.codes.most_common()))  # noqa: T201


@pytest.mark.timeout(max(900, CASES))
def test_a_part_that_is_hard_to_handle_causes_no_internal_error(world: World) -> None:
    sponsor = make_sponsor()
    Member.objects.create(sponsor=sponsor, user=world.person.user, role=Member.Role.OWNER)
    existing = {
        "name": [sponsor.slug],
        "network": [path["network"] for path in world.paths],
        "token": [path["token"] for path in world.paths],
        "transaction_hash": world.person.hashes,
        "address": [world.person.profile.profile_address],
        "session_id": [str(uuid4())],
    }
    client = Client(raise_request_exception=False)
    token = f"Bearer {world.person.token()}"
    statuses: Counter[int] = Counter()
    for _ in range(max(1, CASES // 100)):
        for request in hostile.requests(_DESCRIPTION, existing):
            with _forgotten():
                response = client.generic(
                    request.method,
                    request.path,
                    request.body,
                    hostile.JSON,
                    query_params=None,
                    QUERY_STRING=request.query,
                    headers={"Authorization": token, **request.headers},
                )
            assert response.status_code != 500, request
            assert response.status_code < 400 or _is_problem(request, response), (request, response)
            statuses[response.status_code] += 1
    print(sum(statuses.values()), "requests:", dict(statuses.most_common()))  # noqa: T201


def _is_problem(request: Hostile, response: Any) -> bool:
    # Ad networks read plain text.
    kind = "text/plain" if "/postbacks/" in request.path else "application/problem+json"
    return request.method == "HEAD" or response["content-type"].startswith((kind, "application/problem+json"))


def _cases_each() -> int:
    """Return how many requests an operation gets of each kind."""
    kinds = sum(2 if _has_input(operation) else 1 for operation in OPERATIONS)
    return -(-CASES // kinds)


def _has_input(operation: Any) -> bool:
    return bool(operation.definition.raw.get("requestBody") or operation.definition.raw.get("parameters"))
