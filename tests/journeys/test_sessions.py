"""Sessions end when they are ended, and one refresh token has one successor."""

from dataclasses import replace
from functools import partial

import pytest

from tests.journeys.api import Api
from tests.journeys.people import Person
from tests.journeys.stack import Stack
from tests.journeys.waiting import at_once

pytestmark = pytest.mark.journey

REFRESHES = 20


def with_token(person: Person, token: str) -> Api:
    """Return the person's client with another access token."""
    return replace(person.api, token=token)


def test_a_signed_out_session_ends_for_all_its_tokens_and_for_no_other_session(
    stack: Stack, person: Person
) -> None:
    first, first_refresh = person.api, person.refresh_token
    pair = first.ask_until_served("/api/auth/refresh", {"refresh": first_refresh}).body
    second = with_token(person, pair["access"])
    another_session = replace(person.wallet)
    another_session.sign_in()
    other = with_token(person, another_session.token)
    assert [api.ask_until_served("/api/auth/me").status for api in (first, second, other)] == [200, 200, 200]

    assert second.ask_until_served("/api/auth/logout", {}).status == 200

    responses = [api.ask_until_served("/api/auth/me") for api in (first, second)]
    assert [(response.status, response.body["code"]) for response in responses] == [
        (401, "session-ended")
    ] * 2
    refused = first.ask_until_served("/api/relay/execute", person.new_call())
    assert (refused.status, refused.body["code"]) == (401, "session-ended")
    for token in (first_refresh, pair["refresh"]):
        response = first.ask_until_served("/api/auth/refresh", {"refresh": token})
        assert (response.status, response.body["code"]) == (401, "session-ended")
    assert other.ask_until_served("/api/auth/me").status == 200
    assert stack.records.calls(person.profile.profile_address) == []
    assert stack.records.living_sessions(person.profile.profile_address) == 1


def test_twenty_concurrent_refreshes_leave_one_active_session_with_one_successor(
    stack: Stack, person: Person
) -> None:
    profile, body = person.profile.profile_address, {"refresh": person.refresh_token}

    responses = at_once([partial(person.api.ask_until_served, "/api/auth/refresh", body)] * REFRESHES)

    assert {response.status for response in responses} == {200}
    (successor,) = {response.body["refresh"] for response in responses}
    assert successor != person.refresh_token
    seen = [
        with_token(person, response.body["access"]).ask_until_served("/api/auth/me") for response in responses
    ]
    assert {response.status for response in seen} == {200}
    assert len({response.body["sessionId"] for response in seen}) == 1
    assert stack.records.living_sessions(profile) == stack.records.unused_refresh_tokens(profile) == 1
    assert person.api.ask_until_served("/api/auth/refresh", {"refresh": successor}).status == 200
    assert stack.records.living_sessions(profile) == stack.records.unused_refresh_tokens(profile) == 1
