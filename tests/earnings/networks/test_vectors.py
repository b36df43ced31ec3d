"""
Recorded postbacks.

AdMob's were signed by Google, BitLabs' and one of ayeT-Studios' are the examples of their documentation; the others
were signed with openssl and md5sum by the documented recipe, so that no code of ours vouches for itself.
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
# A real postback, with a space in it.
ADMOB_REAL = (
    "ad_network=4970775877303683148&ad_unit=1000666186&reward_amount=1&reward_item=Key%20Doubler"
    "&timestamp=1584354656623&transaction_id=19808b2d2660df761d5a3259a3d6fbc6&user_id=GbgZbUuAyUgbyTZYQUA2eGNLsjh1"
    "&signature=MEUCIBAEW1jAC72wybEVSeexWF4LESQ7Nkoypy3y1swVDAUvAiEAhKsB68Myzr0N3_dEHFTeeRRlFYFkmyPGW6I5hSEkIGw"
    "&key_id=3335741209"
)
_HEADER = "x-ayetstudios-security-hash"
_VISIT = (
    "eyJhbW91bnQiOiIzIiwiY2FtcGFpZ24iOiJhdXR1bW4iLCJleHAiOjE3OTUwMDAwMDAsImp0aSI6InYtMSIsInVzZXIiOiI0YjNmOWQwZTZhN2M0"
    "YzBmOWExYmUyZDM3YzVhOGYxMCJ9.Px-ZyHV9ufmHP3ld2bWvN58HsqI7VB8VEj5zTa1qasY"
)
# The example of AdGem's page on postbacks of version 3, shortened.
ADGEM_BODY = (
    b'{"request_id": "01786456-b959-404a-baa7-05ef8a2e0290", "timestamp": 1720727170, "data": {"app_id": "2", '
    b'"player_id": "4b3f9d0e6a7c4c0f9a1be2d37c5a8f10", "amount": 150, "payout": 1.5, "all_goals_completed": 1, '
    b'"conversion_id": "c5eb2a9d-41a4-4088-80bb-ebc87bd1bb62", "allow_multiple_conversions": false, '
    b'"goal_name": "Reach level 20", "conversion_type": "reward"}}'
)
ADGEM_SIGNATURE = "14fa09053ba516d1fc95f680bdcc66a436de4d93b375cdbf7d6c1921eaf1a421"
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
        "levelplay",
        "levelplay-key",
        (
            f"appUserId={USER}&rewards=25&eventId=evt-77&itemName=credits&timestamp=202611211234"
            "&signature=557a6392a65d0af894b66e60b17cfa36"
        ),
        {},
        "evt-77",
        "25",
    ),
    (
        "adgem",
        "adgem-key",
        "",
        {
            "method": "POST",
            "body": ADGEM_BODY,
            "headers": {"signature": "14fa09053ba516d1fc95f680bdcc66a436de4d93b375cdbf7d6c1921eaf1a421"},
        },
        "c5eb2a9d-41a4-4088-80bb-ebc87bd1bb62",
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
    return RawRequest(**{"method": "GET", "url": url, "query": query.encode(), **parts})


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
def test_googles_published_vectors_are_accepted_and_its_test_callback_credits_nothing(query: str) -> None:
    adapter = ADAPTERS["admob"]

    event = adapter.parse(adapter.verify(_request("admob", query), secrets=[], keys=GOOGLES_KEYS))

    assert (event.kind, event.external_id) == (PostbackKind.TEST, "123456789")


def test_google_signs_the_decoded_text() -> None:
    adapter = ADAPTERS["admob"]

    event = adapter.parse(adapter.verify(_request("admob", ADMOB_REAL), secrets=[], keys=GOOGLES_KEYS))

    assert (event.kind, event.amount, event.user_ref) == (
        PostbackKind.CREDIT,
        Decimal(1),
        "GbgZbUuAyUgbyTZYQUA2eGNLsjh1",
    )


def test_the_example_in_the_documentation_of_ayet_studios_is_accepted() -> None:
    query = (
        "transaction_id=8ee08f32ae611231b0a49d1bd66e9bf193132561&user_id=testuser123456&amount=0.10&payout=1.50"
        "&offer_name=TEST%20OFFER&click_id=1234abcd5678021"
    )
    headers = {_HEADER: "62a32725866780ada1dec3d62232645f2801e05a91df7b0202e9b780f804f04b"}

    fields = ADAPTERS["ayet-studios"].verify(
        _request("ayet-studios", query, headers=headers),
        secrets=["9f2228fea0d8e7ce10b2ac36053db14c"],
        keys={},
    )

    assert (fields["amount"], fields["offer_name"]) == ("0.10", "TEST OFFER")


def test_the_example_in_bitlabs_documentation_is_accepted() -> None:
    request = RawRequest(
        method="GET",
        url="https://publisher.com/complete",
        query=b"uid=8cc877ee-af19-488d-b28d-216fb866b996&val=500&hash=dbcd6bb8ca677344592842a52b4fca9bec36cd4b",
    )

    fields = ADAPTERS["bitlabs"].verify(request, secrets=["JLOIAUNMHFli7ZJOQVEzm98rzqnm9"], keys={})

    assert fields == {"uid": "8cc877ee-af19-488d-b28d-216fb866b996", "val": "500"}
