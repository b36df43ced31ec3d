"""
Recorded postbacks.

AdMob's were signed by Google, BitLabs' is the example of its documentation; the others were signed
with openssl and md5sum by the documented recipe, so that no code of ours vouches for itself.
"""

from decimal import Decimal
from typing import Any

import pytest

from earnings.models import PostbackKind
from earnings.networks import ADAPTERS
from earnings.networks.base import RawRequest

USER = "4b3f9d0e6a7c4c0f9a1be2d37c5a8f10"
GOOGLES_KEYS = {
    "3335741209": (
        "-----BEGIN PUBLIC KEY-----\n"
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+nzvoGqvDeB9+SzE6igTl7TyK4JB\n"
        "bglwir9oTcQta8NuG26ZpZFxt+F2NDk7asTE6/2Yc8i1ATcGIqtuS5hv0Q==\n"
        "-----END PUBLIC KEY-----"
    )
}
ADMOB_TEST = (
    "ad_network=5450213213286189855&ad_unit=1234567890&custom_data=%7B%22SuperPowers%22%3A%205%7D&reward_amount=1"
    "&reward_item=Battle%20Pass&timestamp=1624634818272&transaction_id=123456789"
    "&user_id=wNX0mXZaz5hEPWBE6StRdv4cmPk2"
    "&signature=MEQCIDhLm6-M98N4YEhPE2owusFjXS1Z7RLagfGiiEqyGyDBAiARo3sevcsrTZEPV8ZG1xBwIiPpuSt4Ege5ZBwH9hyjbQ"
    "&key_id=3335741209"
)
ADMOB_TEST_WITHOUT_REWARD = (
    "ad_network=5450213213286189855&ad_unit=1234567890&timestamp=1598357093204&transaction_id=123456789"
    "&user_id=testuserid"
    "&signature=MEQCIDE9INfQq8L_7QyndJqgwV8cin3qTKIzxnVuAQCTY0QjAiA4R_tN91omphgtcLqRCqt7oJ4c4682QIV7lW6vvsLSiw"
    "&key_id=3335741209"
)
_HEADER = "x-ayetstudios-security-hash"
_VISIT = (
    "eyJhbW91bnQiOiIzIiwiY2FtcGFpZ24iOiJhdXR1bW4iLCJleHAiOjE3OTUwMDAwMDAsImp0aSI6InYtMSIsInVzZXIiOiI0YjNmOWQwZTZhN2M0"
    "YzBmOWExYmUyZDM3YzVhOGYxMCJ9.Px-ZyHV9ufmHP3ld2bWvN58HsqI7VB8VEj5zTa1qasY"
)
# network, secret, query, other parts of the request, id and amount
RECORDED: list[tuple[str, str, str, dict[str, Any], str, str]] = [
    (
        "levelplay",
        "levelplay-key",
        f"userId={USER}&rewards=25&eventId=evt-77&timestamp=202611211234&signature=557a6392a65d0af894b66e60b17cfa36",
        {},
        "evt-77",
        "25",
    ),
    (
        "tapjoy",
        "tapjoy-secret",
        f"snuid={USER}&currency=50&id=reward-9&verifier=73d4c1779db3cddcebc376dce64821bb",
        {},
        "reward-9",
        "50",
    ),
    (
        "adgem",
        "adgem-key",
        (
            f"player_id={USER}&amount=150&payout=1.50&transaction_id=tx-1&goal_name=Level%2010"
            "&verifier=6867eaf02e3507e011d449f8b7b1ea1ec529349f8adc14b9da657a5795f1e4e3"
        ),
        {},
        "tx-1",
        "150",
    ),
    (
        "ayet-studios",
        "ayet-key",
        (
            f"transaction_id=tx-2&external_identifier={USER}&currency_amount=10&payout_usd=0.1&is_chargeback=0"
            "&offer_name=Lords%20%26%20Ladies%20~%20II"
        ),
        {"headers": {_HEADER: "2f538f565c6ff7e86964015f9e257dc5443f5180b3f28918ab1d8e9bd24d350a"}},
        "tx-2",
        "10",
    ),
    (
        "bitlabs",
        "bitlabs-key",
        f"uid={USER}&tx=s1&val=500&raw=0.5&type=COMPLETE&hash=db2804c9db741325bc54ebf8a3ce7d951942bb33",
        {},
        "s1",
        "500",
    ),
    (
        "cpx-research",
        "cpx-secret",
        (
            f"status=1&trans_id=4711&user_id={USER}&amount_local=80&amount_usd=0.8&type=complete"
            "&hash=b5ca0bc834b6b878ac3a21a2dab25a89"
        ),
        {},
        "4711",
        "80",
    ),
    (
        "theoremreach",
        "theorem-key",
        f"user_id={USER}&reward=75&currency=50&tx_id=t-1&hash=4DSfv2l9xpWBANJ8z6ve1qmDShA",
        {},
        "t-1",
        "75",
    ),
    ("visit-link", "visit-key", "", {"path_token": _VISIT}, "v-1", "3"),
]


def _request(slug: str, query: str, **parts: Any) -> RawRequest:
    url = f"https://gateway.example/api/postbacks/{slug}/tok"
    return RawRequest(method="GET", url=url, query=query.encode(), **parts)


@pytest.mark.parametrize(
    ("slug", "secret", "query", "parts", "external_id", "amount"), RECORDED, ids=[row[0] for row in RECORDED]
)
def test_a_recorded_postback_is_accepted(
    slug: str, secret: str, query: str, parts: dict[str, Any], external_id: str, amount: str
) -> None:
    adapter = ADAPTERS[slug]

    event = adapter.parse(adapter.verify(_request(slug, query, **parts), secrets=[secret], keys={}))

    assert (event.kind, event.external_id, event.amount) == (
        PostbackKind.CREDIT,
        external_id,
        Decimal(amount),
    )
    assert event.user_ref == USER


@pytest.mark.parametrize("query", [ADMOB_TEST, ADMOB_TEST_WITHOUT_REWARD])
def test_googles_published_vectors_are_accepted_and_its_test_credits_nobody(query: str) -> None:
    adapter = ADAPTERS["admob"]

    event = adapter.parse(adapter.verify(_request("admob", query), secrets=[], keys=GOOGLES_KEYS))

    assert (event.kind, event.external_id) == (PostbackKind.TEST, "123456789")


def test_the_example_in_bitlabs_documentation_is_accepted() -> None:
    request = RawRequest(
        method="GET",
        url="https://publisher.com/complete",
        query=b"uid=8cc877ee-af19-488d-b28d-216fb866b996&val=500&hash=dbcd6bb8ca677344592842a52b4fca9bec36cd4b",
    )

    fields = ADAPTERS["bitlabs"].verify(request, secrets=["JLOIAUNMHFli7ZJOQVEzm98rzqnm9"], keys={})

    assert fields == {"uid": "8cc877ee-af19-488d-b28d-216fb866b996", "val": "500"}
