"""A sponsor's server decides about calls; whatever it does, no other call waits for it, and no limit is passed."""

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from credits.models import CreditHold
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from gateway.common import guards, public_http
from gateway.common.errors import DomainError
from relay.models import RelayTransaction
from relay.services.accepting import preparation
from relay.services.accepting.preparation import Draft
from sponsors.errors import (
    CallLimit,
    VerifierLimit,
    VerifierRefused,
    VerifierUnknown,
)
from sponsors.models import PolicyVersion, RefusedRequest, Sponsor, SponsoredCall, Verifier
from sponsors.rules.policies import OutsideResponse, Verification
from sponsors.services import verifiers
from sponsors.services.paying import SponsorChoice
from sponsors.services.verifiers import AskedCall
from tests.database import rewrite
from tests.factories import random_address
from tests.journeys.waiting import in_time, until
from tests.relay.callers import execute
from tests.relay.conftest import Refused
from tests.relay.quoting import caller_of, execute_prepared
from tests.relay.signing import set_data_payload
from tests.relay.sponsoring import execute_sponsored
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.sponsors.verifier_server import Answers, VerifierServer, running, says
from tests.threads import at_once
from tests.transactions import assert_none_is_open
from users.models import User

NewCall = Callable[..., RelayCall]


@pytest.fixture
def server(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[VerifierServer]:
    """The server of a sponsor, on this machine; no question is asked in a transaction."""
    settings.WEBHOOK_ALLOW_HTTP = settings.WEBHOOK_ALLOW_LOOPBACK = True
    settings.WEBHOOK_SECRET_KEYS = [secrets.token_urlsafe(32)]
    verifiers._recent.clear()
    post = public_http.post

    def checked(*args: Any, **options: Any) -> Any:
        assert_none_is_open()
        return post(*args, **options)

    monkeypatch.setattr("sponsors.services.verifiers.post", checked)
    with running() as verifier:
        yield verifier


@pytest.fixture
def newcomer(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit."""
    return open_account(profile, 1)


def make_verified(server: VerifierServer, **terms: Any) -> tuple[Sponsor, PolicyVersion, str]:
    """Return a sponsor whose server decides, its policy, and the secret of the questions."""
    sponsor = make_sponsor()
    verifier = Verifier(sponsor=sponsor, url=server.url)
    verifiers.save(verifier, {})
    version = make_policy(sponsor, profiles="verified", **terms)
    return sponsor, version, verifiers.create_secret(verifier)


@pytest.mark.django_db
def test_the_server_learns_of_the_call_in_a_signed_question_and_its_yes_pays(
    services: Services, server: VerifierServer, newcomer: User, new_call: NewCall
) -> None:
    sponsor, version, secret = make_verified(server)
    call = new_call()
    name = execute_sponsored(newcomer, call, sponsor)

    row = RelayTransaction.objects.get(transaction_hash=name)
    paid = SponsoredCall.objects.get()
    assert (paid.hold, paid.version) == (row.hold, version)
    assert server.verified(secret) == {
        "sponsor": sponsor.slug,
        "policy": version.policy.name,
        "profile": newcomer.profile_address,
        "controller": row.controller_address,
        "chainId": services.chain_id,
        "hash": row.digest,
        "payload": "0x" + call.payload.hex(),
        "credits": paid.sponsor_hold.amount,
    }


@pytest.mark.django_db
def test_prepare_and_execute_send_one_verifier_request_for_the_same_call(
    server: VerifierServer, newcomer: User, profile: Profile
) -> None:
    sponsor, version, _ = make_verified(server)
    draft = Draft(
        set_data_payload(), controller=profile.controller.address, sponsor=SponsorChoice(sponsor.slug)
    )
    prepared = preparation.prepare(caller=caller_of(newcomer), draft=draft, now=timezone.now())
    assert prepared.quote is not None
    assert prepared.quote.sponsor_version == version
    server.answer = says({"pay": False})
    execute_prepared(newcomer, profile, prepared, quote=prepared.quote)
    assert SponsoredCall.objects.get().version == version
    assert len(server.questions) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"pay": False}, VerifierRefused),
        ({"pay": True, "maximumCredits": 1}, VerifierLimit),
        ({"pay": True, "maximumCredits": 0}, VerifierLimit),
    ],
)
def test_a_no_and_a_low_maximum_pay_nothing(
    server: VerifierServer,
    newcomer: User,
    new_call: NewCall,
    refused: Refused,
    answer: Any,
    kind: type[DomainError],
) -> None:
    sponsor, _, _ = make_verified(server)
    server.answer = says(answer)
    with refused(kind):
        execute_sponsored(newcomer, new_call(), sponsor)


# What a broken or hostile server may return: none is a yes.
LIES = {
    "no JSON": says(b"yes"),
    "nothing": says(b""),
    "no object": says([True]),
    "a word for yes": says({"pay": "true"}),
    "a number for yes": says({"pay": 1}),
    "a negative maximum": says({"pay": True, "maximumCredits": -1}),
    "a fraction of a credit": says({"pay": True, "maximumCredits": 0.5}),
    "a flag for a maximum": says({"pay": True, "maximumCredits": True}),
    "a maximum without end": says(b'{"pay": true, "maximumCredits": ' + b"9" * 400 + b"}"),
    "nested deeply": says(b"[" * 1000),
    "a huge answer": says(b'{"pay": true, "note": "' + b"x" * 2**22 + b'"}'),
    "an error with a yes": says({"pay": True}, 500),
    "a yes elsewhere": says({"pay": True}, 302, Location="http://127.0.0.1:1/"),
    "another success": says({"pay": True}, 201),
}


@pytest.mark.django_db
def test_a_malformed_verifier_response_is_ignored_and_the_next_policy_pays(
    server: VerifierServer, newcomer: User, new_call: NewCall, refused: Refused
) -> None:
    sponsor, _, _ = make_verified(server)
    call = new_call()
    for number, server.answer in enumerate(LIES.values(), start=1):
        verifiers._recent.clear()
        # Three failures in a row would open the circuit breaker.
        verifiers._guard_of.cache_clear()
        with refused(VerifierUnknown) as refusal:
            execute_sponsored(newcomer, call, sponsor)
        assert (refusal.value.status, refusal.value.retryable, refusal.value.retry_after) == (503, True, 10)
        assert len(server.questions) == number

    other = make_policy(sponsor, position=1)
    execute_sponsored(newcomer, call, sponsor)
    assert SponsoredCall.objects.get().version == other


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (says({}, 404), "status 404."),
        (says({}, 401), "status 401."),
        (says({}, 302, Location="http://127.0.0.1:1/"), "status 302, a redirect, which is not followed."),
        (says(b"yes"), "a body of another form."),
        (lambda request: request.connection.close(), "none within a second."),
    ],
)
def test_a_refusal_says_what_the_verifier_gave(
    server: VerifierServer, newcomer: User, new_call: NewCall, refused: Refused, answer: Answers, shown: str
) -> None:
    sponsor, _, _ = make_verified(server)
    server.answer, call = answer, new_call()
    with refused(VerifierUnknown) as refusal:
        execute_sponsored(newcomer, call, sponsor)
    assert refusal.value.detail.endswith(f"no valid response: {shown}")
    stored = RefusedRequest.objects.get()
    assert (stored.rule, stored.server_response + ".") == ("sponsor-verifier-unknown", shown)
    # Nothing of it is kept: once the server is repaired, the same call is paid.
    server.answer = says({"pay": True})
    assert execute_sponsored(newcomer, call, sponsor)


@pytest.mark.django_db
def test_three_failures_in_a_row_are_one_outage_which_a_valid_response_ends(
    server: VerifierServer, newcomer: User, new_call: NewCall, refused: Refused
) -> None:
    sponsor, _, _ = make_verified(server)
    call, begins = new_call(), timezone.now()
    for number in (1, 2, 3):
        server.answer = says({}, 500 + number)
        with refused(VerifierUnknown):
            execute_sponsored(newcomer, call, sponsor)
        failing = Verifier.objects.get()
        assert (failing.failures, failing.fault) == (number, f"status {500 + number}")
        assert failing.failing_since is not None
        assert begins <= failing.failing_since <= timezone.now()
        assert (failing.announced_at is not None) is (number == 3)
    # The circuit breaker is open now: the server is not asked, and the refusal says why.
    with refused(VerifierUnknown) as refusal:
        execute_sponsored(newcomer, call, sponsor)
    assert refusal.value.detail.endswith("no valid response: not asked yet again, after status 503.")
    assert RefusedRequest.objects.get().requests == 4
    assert len(server.questions) == Verifier.objects.get().failures == 3

    verifiers._guard_of.cache_clear()
    server.answer = says({"pay": True})
    execute_sponsored(newcomer, call, sponsor)
    ended = Verifier.objects.get()
    assert (ended.failures, ended.fault, ended.failing_since) == (0, "", None)
    assert ended.announced_at == failing.announced_at


@pytest.mark.django_db(transaction=True)
def test_failures_of_several_processes_at_the_same_moment_announce_one_outage(settings: Settings) -> None:
    settings.WEBHOOK_SECRET_KEYS = [secrets.token_urlsafe(32)]
    verifier = Verifier(sponsor=make_sponsor(), url="https://pays.example.org/")
    verifiers.save(verifier, {})
    announced: list[Any] = []

    def fail() -> None:
        verifiers._record(verifier, OutsideResponse(False, fault="status 500"))
        announced.append(Verifier.objects.get().announced_at)

    at_once([fail] * 8)
    assert Verifier.objects.get().failures == 8
    assert len({moment for moment in announced if moment is not None}) == 1


@pytest.mark.django_db
def test_a_verifiers_approval_overrides_no_limit_and_is_not_requested_beyond_one(
    server: VerifierServer, newcomer: User, new_call: NewCall, refused: Refused
) -> None:
    sponsor, _, _ = make_verified(server, call_credits=1)
    with refused(CallLimit):
        execute_sponsored(newcomer, new_call(), sponsor)
    assert server.questions == []


@pytest.mark.django_db
def test_a_verifier_is_queried_only_about_calls_of_its_sponsor(
    server: VerifierServer, user: User, new_call: NewCall
) -> None:
    make_verified(server)
    other = make_sponsor()
    make_policy(other)
    execute(user=user, call=new_call(channel=1), now=timezone.now())
    execute_sponsored(user, new_call(channel=2), other)
    assert server.questions == []
    assert SponsoredCall.objects.count() == 1


@pytest.mark.django_db
def test_a_removed_verifier_is_not_queried(
    server: VerifierServer, newcomer: User, new_call: NewCall, refused: Refused
) -> None:
    sponsor, _, _ = make_verified(server)
    verifiers.remove(Verifier.objects.get())
    with refused(VerifierUnknown):
        execute_sponsored(newcomer, new_call(), sponsor)
    assert server.questions == []
    assert Verifier.objects.get().removed_at is not None


@pytest.mark.django_db
def test_a_yes_of_a_removed_verifier_pays_for_no_later_call(
    server: VerifierServer, newcomer: User, profile: Profile, refused: Refused
) -> None:
    sponsor, _, _ = make_verified(server)
    draft = Draft(
        set_data_payload(), controller=profile.controller.address, sponsor=SponsorChoice(sponsor.slug)
    )
    prepared = preparation.prepare(caller=caller_of(newcomer), draft=draft, now=timezone.now())
    assert prepared.quote is not None
    verifiers.remove(Verifier.objects.get())
    with refused(VerifierUnknown):
        execute_prepared(newcomer, profile, prepared, quote=prepared.quote)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "https://127.0.0.1/"],
)
def test_a_verifier_has_a_public_https_address(settings: Settings, url: str) -> None:
    settings.WEBHOOK_SECRET_KEYS = [secrets.token_urlsafe(32)]
    with pytest.raises(ValidationError):
        verifiers.save(Verifier(sponsor=make_sponsor(), url=url), {})
    assert not Verifier.objects.exists()


@pytest.mark.django_db
def test_a_verifier_name_that_resolves_to_this_machine_is_not_contacted(
    settings: Settings, server: VerifierServer, newcomer: User, new_call: NewCall, refused: Refused
) -> None:
    sponsor, _, _ = make_verified(server)
    rewrite(Verifier.objects, url=server.url.replace("127.0.0.1", "localhost"))
    settings.WEBHOOK_ALLOW_LOOPBACK = False
    with refused(VerifierUnknown):
        execute_sponsored(newcomer, new_call(), sponsor)
    assert server.questions == []


@pytest.mark.django_db(transaction=True)
def test_a_stalled_verifier_delays_no_other_calls_and_its_own_only_briefly(
    server: VerifierServer, user: User, new_call: NewCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine it takes a while to make the calls: no trial is due before the end.
    monkeypatch.setattr(guards, "OPEN_SECONDS", 600)
    sponsor, _, _ = make_verified(server)
    server.answer = server.stall
    calls = [new_call(channel=secrets.randbits(100)) for _ in range(24)]
    own, stalled = calls[:8], calls[8:]
    seconds: list[float] = []

    def timed(call: RelayCall) -> str:
        began = time.monotonic()
        name = execute(user=user, call=call, now=timezone.now())
        seconds.append(time.monotonic() - began)
        return name

    def refused() -> None:
        with pytest.raises(VerifierUnknown):
            execute_sponsored(user, new_call(channel=secrets.randbits(100)), sponsor)

    began = time.monotonic()
    asking = [partial(execute_sponsored, user, call, sponsor) for call in stalled]
    results = at_once([*asking, *(partial(timed, call) for call in own)])
    took = time.monotonic() - began

    refusals, names = results[:16], results[16:]
    assert {type(refusal) for refusal in refusals} == {VerifierUnknown}
    assert all(isinstance(name, str) for name in names)
    assert (RelayTransaction.objects.count(), CreditHold.objects.count()) == (8, 8)
    # Two questions at a time, and none after three failures.
    assert len(server.questions) <= 4
    assert took < 10
    assert max(seconds) < took

    # Two may have asked at once and the others given up; the next one is the third failure.
    in_time(refused, seconds=3)
    # From now on, nobody asks, and nobody waits.
    asked = len(server.questions)
    for _ in range(3):
        in_time(refused, seconds=1)
    assert len(server.questions) == asked <= 4


def _all_wait(server: VerifierServer, asking: list[Future[OutsideResponse | None]]) -> bool:
    return len(server.questions) + sum(one.done() for one in asking) >= len(asking)


@pytest.fixture
def few_threads(settings: Settings) -> Iterator[None]:
    """Let verifiers share the threads of a process of the usual size."""
    settings.WEB_THREADS = 32
    caches = (verifiers._threads, verifiers._threads_of_unproven)
    for one in caches:
        one.cache_clear()
    yield
    for one in caches:
        one.cache_clear()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("few_threads")
def test_verifiers_that_hang_leave_threads_for_one_that_responds(
    server: VerifierServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifiers, "_SECONDS", 60.0)
    versions = [make_verified(server)[1]]

    def ask(version: PolicyVersion) -> OutsideResponse | None:
        try:
            question = Verification(version.pk, version.policy.name, 1)
            call = AskedCall(random_address(), random_address(), 42, secrets.token_hex(32), b"")
            return verifiers.ask(question, call)
        finally:
            connection.close()

    assert ask(versions[0]) == OutsideResponse(True)
    with ThreadPoolExecutor(16) as threads, ExitStack() as servers:
        for _ in range(4):
            hanging = servers.enter_context(running())
            hanging.answer = hanging.stall
            version = make_verified(hanging)[1]
            asking = [threads.submit(ask, version) for _ in range(4)]
            settled = partial(_all_wait, hanging, asking)
            until("its threads wait", settled)
        assert [ask(versions[0]) for _ in range(3)] == [OutsideResponse(True)] * 3
