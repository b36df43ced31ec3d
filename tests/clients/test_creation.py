"""The Python package on a sponsor's server: one profile for each key, however often the request is repeated."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from credit_relay_client import RelayProblem, create_profile, register_profile, requested_profile
from tests.clients.fake_service import BUSY, KEY_MANAGER, PROFILE, FakeService, problem

PATH = "/api/universal-profile"
OF_PROFILE = f"{PATH}/{PROFILE}"
API_KEY = "sponsor_" + secrets.token_urlsafe(8)
CONTROLLER = KEY_MANAGER
_ADDRESSES = json.loads((Path(__file__).parent / "addresses.json").read_text())


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("credit_relay_client.creation._PAUSE_SECONDS", 0.01)


def asked(status: str) -> dict[str, Any]:
    return {"universalProfileAddress": PROFILE, "status": status, "controllers": []}


def keys(service: FakeService) -> list[str | None]:
    return [key for path, _, key in service.keys if path == PATH]


def test_a_profile_is_requested_with_the_api_key_and_followed_to_its_end(service: FakeService) -> None:
    service.replies[PATH] = [(200, asked("Pending"))]
    service.replies[OF_PROFILE] = [(200, asked("Submitted")), BUSY, (200, asked("Success"))]

    profile = create_profile(
        service.url, API_KEY, [CONTROLLER], metadata=b"\x00\xff", voucher="mine", origin="192.0.2.7"
    )

    assert profile == asked("Success")
    named = {"sponsorVoucher": "mine", "origin": "192.0.2.7"}
    body = {"lsp6ControllerAddress": [CONTROLLER], "lsp3Profile": "0x00ff", **named}
    assert service.requests == [(PATH, body), (OF_PROFILE, {}), (OF_PROFILE, {}), (OF_PROFILE, {})]
    assert [method for _, method, _ in service.keys] == ["POST", "GET", "GET", "GET"]
    assert {headers["Authorization"] for headers in service.headers} == {f"Bearer {API_KEY}"}


def test_a_profile_of_salt_and_data_is_requested_for_further_chains_and_another_registered(
    service: FakeService,
) -> None:
    service.replies[PATH] = [(200, asked("Success"))]
    salt, data = secrets.token_bytes(32), secrets.token_bytes(8)

    create_profile(service.url, API_KEY, salt=salt, post_deployment_data=data, chain_ids=[8453, 1])
    service.replies[f"{PATH}/register"] = [(200, asked("Success"))]
    assert register_profile(service.url, API_KEY, PROFILE) == asked("Success")

    body = {"salt": "0x" + salt.hex(), "postDeploymentCallData": "0x" + data.hex(), "chainIds": [8453, 1]}
    assert service.requests == [(PATH, body), (f"{PATH}/register", {"universalProfileAddress": PROFILE})]
    assert {headers["Authorization"] for headers in service.headers} == {f"Bearer {API_KEY}"}


def test_retries_have_one_key_and_other_profiles_have_their_own(service: FakeService) -> None:
    accepted = (200, asked("Success"))
    service.replies[PATH] = [BUSY, (502, {}), accepted, accepted, accepted]

    create_profile(service.url, API_KEY, [CONTROLLER])
    create_profile(service.url, API_KEY, [CONTROLLER])
    create_profile(service.url, API_KEY, [CONTROLLER], key="user-4711")

    first, *later = keys(service)
    assert later[:2] == [first, first]
    assert len({first, *later[2:]}) == 3
    assert later[-1] == "user-4711"
    assert service.bodies(PATH) == [{"lsp6ControllerAddress": [CONTROLLER]}] * 5


def test_without_waiting_the_profile_is_returned_as_accepted_and_read_later(service: FakeService) -> None:
    service.replies[PATH] = [(200, asked("Pending"))]
    service.replies[OF_PROFILE] = [(200, asked("Failed"))]

    accepted = create_profile(service.url, API_KEY, [CONTROLLER], wait_seconds=0)

    assert (accepted["status"], len(service.requests)) == ("Pending", 1)
    assert requested_profile(service.url, API_KEY, PROFILE)["status"] == "Failed"


def test_a_deployment_that_is_not_final_in_time_is_an_error_with_the_address(service: FakeService) -> None:
    service.replies[PATH] = [(200, asked("Submitted"))]
    service.replies[OF_PROFILE] = [(200, asked("Submitted"))] * 100

    with pytest.raises(TimeoutError, match=f"{PROFILE} is not final after 0.05 s"):
        create_profile(service.url, API_KEY, [CONTROLLER], wait_seconds=0.05)


def test_what_the_policies_of_the_sponsor_refuse_is_a_problem_with_its_code(service: FakeService) -> None:
    service.replies[PATH] = [problem(402, "sponsor-limit-window-calls", limit=20, used=20)]

    with pytest.raises(RelayProblem) as refusal:
        create_profile(service.url, API_KEY, [CONTROLLER])

    assert (refusal.value.code, refusal.value.members) == (
        "sponsor-limit-window-calls",
        {"limit": 20, "used": 20},
    )
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "address", [row["address"] for row in _ADDRESSES if row["code"] is not None], ids=repr
)
def test_what_is_no_address_is_refused_before_anything_is_sent(service: FakeService, address: Any) -> None:
    with pytest.raises(ValueError, match=r"^controllers\[1\]: "):
        create_profile(service.url, API_KEY, [CONTROLLER, address])
    with pytest.raises(ValueError, match=r"^address: "):
        requested_profile(service.url, API_KEY, address)
    with pytest.raises(ValueError, match=r"^address: "):
        register_profile(service.url, API_KEY, address)
    assert service.requests == []


@pytest.mark.parametrize(
    ("place", "wrong", "error"), [(1, "8453", TypeError), (0, True, TypeError), (2, 0, ValueError)]
)
def test_what_is_no_chain_id_is_named(
    service: FakeService, place: int, wrong: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"^chain_ids\[{place}\]: "):
        create_profile(service.url, API_KEY, [CONTROLLER], chain_ids=[*range(1, place + 1), wrong])
    assert service.requests == []


_OF_DATA = {"salt": bytes(32), "post_deployment_data": b"data"}


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        ({"controllers": []}, ValueError),
        ({"controllers": CONTROLLER}, TypeError),
        ({"controllers": None}, TypeError),
        ({"metadata": "0x00ff"}, TypeError),
        ({"metadata": None}, TypeError),
        ({"controllers": [CONTROLLER], **_OF_DATA}, ValueError),
        ({"metadata": b"card", "controllers": None, **_OF_DATA}, ValueError),
        ({"salt": b"short", "controllers": None, "post_deployment_data": b"data"}, ValueError),
        ({"salt": "0x" + "5a" * 32, "controllers": None, "post_deployment_data": b"data"}, TypeError),
        ({"salt": None, "controllers": None, "post_deployment_data": b"data"}, TypeError),
        ({"post_deployment_data": None, "controllers": None, "salt": bytes(32)}, TypeError),
        ({"post_deployment_data": b"", "controllers": None, "salt": bytes(32)}, ValueError),
        ({"chain_ids": 8453}, TypeError),
        ({"chain_ids": "8453"}, TypeError),
    ],
)
def test_an_argument_of_another_type_is_named(
    service: FakeService, mistake: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=f"^{next(iter(mistake))}: "):
        create_profile(service.url, API_KEY, **{"controllers": [CONTROLLER], **mistake})
    assert service.requests == []
