"""How each network's parameters are read."""

import hmac
import secrets
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from devstack.ad_networks.signing import KEY_ID
from earnings.models import PostbackKind
from earnings.networks import ADAPTERS
from earnings.networks.base import PostbackRefused, RawRequest
from earnings.networks.signatures import unpadded
from tests.earnings.ad_networks import NOW, key_pair, new_reward, new_secret, parse, request_of

CREDIT, REVERSAL, PENDING, INFO = (
    PostbackKind.CREDIT,
    PostbackKind.REVERSAL,
    PostbackKind.PENDING,
    PostbackKind.INFO,
)


def _parsed(slug: str, **fields: str) -> tuple[str, str, str]:
    event = ADAPTERS[slug].parse(fields)
    return event.kind, event.external_id, event.original_id


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tx": "s1", "val": "5", "type": "COMPLETE"}, (CREDIT, "s1", "s1")),
        ({"tx": "s1", "val": "5", "type": "SCREENOUT"}, (CREDIT, "s1", "s1")),
        ({"tx": "s1", "val": "0", "type": "SCREENOUT"}, (INFO, "s1", "s1")),
        ({"tx": "s1", "val": "5", "type": "START_BONUS"}, (CREDIT, "s1", "s1")),
        ({"tx": "s1", "val": "-5", "type": "RECONCILIATION"}, (REVERSAL, "s1", "s1")),
        ({"tx": "s2", "val": "-5", "type": "RECONCILIATION", "ref": "s1"}, (REVERSAL, "s2", "s1")),
        ({"tx": "or9", "val": "-5", "type": "RECONCILIATION"}, (REVERSAL, "or9", "o9")),
        ({"tx": "o9", "val": "5", "type": "COMPLETE", "state": "PENDING"}, (PENDING, "o9", "o9")),
        ({"tx": "o9", "val": "5", "type": "COMPLETE", "state": "REVIEWING"}, (PENDING, "o9", "o9")),
        ({"tx": "o9", "val": "5", "type": "COMPLETE", "state": "COMPLETED"}, (CREDIT, "o9", "o9")),
        ({"tx": "o9", "val": "5", "type": "RECONCILIATION", "state": "RECONCILED"}, (REVERSAL, "o9", "o9")),
        ({"tx": "o9", "val": "5", "state": "REJECTED"}, (REVERSAL, "o9", "o9")),
        # Without its state, an offer may be pending, whatever the type is.
        ({"tx": "o9", "val": "5", "type": "COMPLETE"}, (PENDING, "o9", "o9")),
        ({"tx": "o9", "val": "5"}, (PENDING, "o9", "o9")),
        ({"tx": "o9", "val": "-5"}, (REVERSAL, "o9", "o9")),
        # States are switched off at BitLabs.
        ({"tx": "o9", "val": "5", "type": "COMPLETE", "offer_state": "NONE"}, (CREDIT, "o9", "o9")),
        ({"tx": "o9", "val": "5", "type": "", "state": ""}, (CREDIT, "o9", "o9")),
        # A survey whose type is not in the address.
        ({"tx": "s1", "val": "5"}, (CREDIT, "s1", "s1")),
        ({"tx": "s1", "val": "5", "type": ""}, (CREDIT, "s1", "s1")),
        ({"tx": "s1", "val": "-5", "type": ""}, (REVERSAL, "s1", "s1")),
        # Stateful receipts and purchases.
        ({"tx": "m1", "val": "5", "type": "state_change"}, (PENDING, "m1", "m1")),
        (
            {"tx": "m1", "val": "5", "type": "state_change", "magic_receipt_state": "COMPLETED"},
            (CREDIT, "m1", "m1"),
        ),
        ({"tx": "c1", "val": "5", "cashback_state": "CREATED"}, (PENDING, "c1", "c1")),
        ({"tx": "c1", "val": "5", "cashback_state": "ADJUSTED"}, (INFO, "c1", "c1")),
        ({"tx": "c1", "val": "5", "cashback_state": "COMPLETED", "offer_state": ""}, (CREDIT, "c1", "c1")),
    ],
)
def test_bitlabs_types_and_states_decide_the_kind(
    fields: dict[str, str], expected: tuple[Any, str, str]
) -> None:
    assert _parsed("bitlabs", **fields) == expected


@pytest.mark.parametrize(
    ("fields", "takes_back"),
    [
        ({"val": "-5", "type": "RECONCILIATION"}, Decimal(5)),
        ({"val": "-0.5", "type": "RECONCILIATION"}, Decimal("0.5")),
        # Stateful callbacks are not negative.
        ({"val": "5", "type": "state_change", "state": "RECONCILED"}, Decimal(5)),
        ({"val": "0", "type": "RECONCILIATION"}, None),
        ({"val": "5", "state": "REJECTED"}, None),
        ({"val": "5", "type": "COMPLETE"}, None),
    ],
)
def test_bitlabs_reports_how_much_is_taken_back(fields: dict[str, str], takes_back: Decimal | None) -> None:
    assert ADAPTERS["bitlabs"].parse({"tx": "s1", **fields}).takes_back == takes_back


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"status": "1", "type": "complete", "amount_local": "8"}, CREDIT),
        ({"status": "1", "type": "bonus", "amount_local": "8"}, CREDIT),
        ({"status": "1", "type": "out", "amount_local": "0"}, INFO),
        ({"status": "2", "type": "complete", "amount_local": "8"}, REVERSAL),
        ({"status": "2", "type": "out", "amount_local": "0"}, INFO),
        ({"status": "1", "type": "out", "amount_local": "0.5"}, CREDIT),
        ({"status": "2", "type": "out", "amount_local": "0.5"}, REVERSAL),
        ({"status": "2", "type": "complete", "amount_local": "0"}, REVERSAL),
    ],
)
def test_status_type_and_amount_of_cpx_research_decide_the_kind(
    fields: dict[str, str], expected: PostbackKind
) -> None:
    assert _parsed("cpx-research", trans_id="77", **fields) == (expected, "77", "77")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"transaction_id": "a", "is_chargeback": "0"}, (CREDIT, "a", "a")),
        ({"transaction_id": "a"}, (CREDIT, "a", "a")),
        ({"transaction_id": "r-a", "is_chargeback": "1"}, (REVERSAL, "r-a", "a")),
        ({"transaction_id": "r-a"}, (REVERSAL, "r-a", "a")),
        ({"transaction_id": "a", "is_chargeback": "1"}, (REVERSAL, "a", "a")),
    ],
)
def test_ayet_studios_flag_or_prefix_makes_a_reversal(
    fields: dict[str, str], expected: tuple[Any, str, str]
) -> None:
    assert _parsed("ayet-studios", currency_amount="4", **fields) == expected


@pytest.mark.parametrize(
    ("slug", "fields"),
    [
        ("bitlabs", {"tx": "s1", "val": "5", "type": "SURPRISE"}),
        ("bitlabs", {"tx": "s1", "val": "5", "state": "SURPRISE"}),
        ("bitlabs", {"tx": "o1", "val": "5", "state": "COMPLETED", "offer_state": "PENDING"}),
        ("adgem", {"conversion_id": "c", "amount": "5", "conversion_type": "gift"}),
        ("bitlabs", {"tx": "", "val": "5", "type": "COMPLETE"}),
        ("cpx-research", {"trans_id": "1", "status": "3", "amount_local": "5"}),
        ("ayet-studios", {"transaction_id": "a", "currency_amount": "5", "is_chargeback": "yes"}),
        ("theoremreach", {"tx_id": "t", "reward": "5", "reversal": "maybe"}),
        ("adgem", {"transaction_id": "with space", "amount": "5"}),
        ("adgem", {"transaction_id": "x" * 201, "amount": "5"}),
        ("tapjoy", {"id": "ü", "currency": "5", "snuid": ""}),
    ],
)
def test_undocumented_values_are_refused(slug: str, fields: dict[str, str]) -> None:
    with pytest.raises(PostbackRefused):
        ADAPTERS[slug].parse(fields)


def test_a_negative_payout_of_adgem_takes_back_a_positive_amount() -> None:
    assert _parsed("adgem", transaction_id="t", amount="5", payout="-0.1") == (REVERSAL, "t", "t")


def test_an_installation_that_adgem_posts_is_information() -> None:
    assert _parsed("adgem", conversion_id="c", amount="0", conversion_type="install") == (INFO, "c", "c")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"data": {"conversion_id": "c", "amount": 5, "amount": 6}}', "repeated"),
        (b'{"data": {"conversion_id": "c", "amount": NaN}}', "amount"),
        (b'{"data": [1]}', "no data"),
        (b"[" * 2_000, "unreadable"),
        (b'{"data": {"conversion_id": "c", "amount": 5}', "unreadable"),
    ],
)
def test_an_ambiguous_body_of_adgem_is_refused(body: bytes, reason: str) -> None:
    adapter, signature = ADAPTERS["adgem"], hmac.new(b"key", body, "sha256").hexdigest()
    request = RawRequest(method="POST", url="", query=b"", body=body, headers={"signature": signature})

    with pytest.raises(PostbackRefused, match=reason):
        adapter.parse(adapter.verify(request, secrets=["key"], keys={}))


def test_numbers_of_adgem_are_taken_as_they_are_written() -> None:
    body = b'{"data": {"conversion_id": "c", "player_id": "p", "amount": 0.1, "payout": 1.0e-5}}'
    signature = hmac.new(b"key", body, "sha256").hexdigest()
    request = RawRequest(method="POST", url="", query=b"", body=body, headers={"signature": signature})

    event = ADAPTERS["adgem"].parse(ADAPTERS["adgem"].verify(request, secrets=["key"], keys={}))

    assert (event.amount, event.payout_usd) == (Decimal("0.1"), Decimal("0.00001"))


@pytest.mark.parametrize("names", ["userId appUserId", "userid userId"])
def test_levelplay_names_its_user_once(names: str) -> None:
    users = "&".join(f"{name}={'4' * 32}" for name in names.split())
    query = f"{users}&rewards=5&eventId=e&timestamp=202611211234&signature=5"

    with pytest.raises(PostbackRefused, match="user reference"):
        parse("levelplay", RawRequest(method="GET", url="", query=query.encode()), "key")


@pytest.mark.parametrize("amount", ["0", "5", "", "-5"])
def test_an_installation_of_adgem_is_information(amount: str) -> None:
    """AdGem ends the address of an offer's mere installation so; it pays nothing."""
    new_reward = {"transaction_id": "t", "payout": "0.1", "nonpayable_install_goal": "true"}
    assert _parsed("adgem", amount=amount, **new_reward) == (INFO, "t", "t")
    with pytest.raises(PostbackRefused):
        _parsed("adgem", **{**new_reward, "amount": "5", "nonpayable_install_goal": "maybe"})


def test_a_colon_cannot_move_the_border_between_tapjoys_fields() -> None:
    secret = new_secret("tapjoy")
    request = request_of("tapjoy", new_reward(external_id="a", user="b:c", amount="5"), secret)

    with pytest.raises(PostbackRefused, match="a field contains the separator"):
        parse("tapjoy", request, secret)


def test_a_digit_cannot_move_between_levelplays_fields() -> None:
    secret, reward = new_secret("levelplay"), new_reward(amount="15")
    request = request_of("levelplay", reward, secret)
    longer = reward.user + "1"
    moved = request.query.replace(reward.user.encode(), longer.encode()).replace(b"rewards=15", b"rewards=5")

    assert moved != request.query
    with pytest.raises(PostbackRefused, match="user reference"):
        parse("levelplay", type(request)(method="GET", url=request.url, query=moved), secret)


def test_a_digit_of_levelplays_minute_cannot_make_another_event() -> None:
    secret, reward = new_secret("levelplay"), new_reward()
    request = request_of("levelplay", reward, secret)
    minute = NOW.strftime("%Y%m%d%H%M")
    event = reward.external_id
    # 12:34 of one event, signed, is 12:3 of another.
    moved = request.query.replace(f"timestamp={minute}".encode(), f"timestamp={minute[:-1]}".encode())
    moved = moved.replace(f"eventId={event}".encode(), f"eventId={minute[-1]}{event}".encode())

    assert len(moved) == len(request.query)
    assert moved != request.query
    with pytest.raises(PostbackRefused, match="timestamp"):
        parse("levelplay", type(request)(method="GET", url=request.url, query=moved), secret)


def test_levelplays_minute_is_utc() -> None:
    secret = new_secret("levelplay")

    assert parse("levelplay", request_of("levelplay", new_reward(), secret), secret).occurred_at == NOW


def test_a_key_of_another_kind_verifies_nothing() -> None:
    request = request_of("admob", new_reward(), new_secret("admob"))
    public = key_pair()[1]
    rsa = "-----BEGIN PUBLIC KEY-----\nMFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBALvEXAMPLE\n-----END PUBLIC KEY-----"

    for pem in (rsa, "nonsense", public[:-40]):
        with pytest.raises(PostbackRefused, match="bad signature"):
            ADAPTERS["admob"].verify(request, secrets=[], keys={"3335741209": pem})


@pytest.mark.parametrize(
    ("chosen", "respelled"),
    [
        ("x%26reward_amount%3D1000", "x&reward_amount=1000"),
        ("x%26transaction_id%3Danother", "x&transaction_id=another"),
        ("x%26user_id%3Dsomebody", "x&user_id=somebody"),
        ("x%26reward_amount%3D9%26user_id%3Dme", "x&reward_amount=9&user_id=me"),
    ],
)
def test_a_wallet_cannot_smuggle_a_parameter_into_what_google_signs(chosen: str, respelled: str) -> None:
    """Google signs decoded text, so a wallet's own `custom_data` may be respelled without breaking the signature."""
    message = f"ad_unit=1&custom_data={chosen}&reward_amount=1&timestamp={NOW.timestamp() * 1000:.0f}&transaction_id=t"
    key = load_pem_private_key(key_pair()[0].encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signature = unpadded(key.sign(unquote(message).encode(), ec.ECDSA(SHA256())))
    for spelled in (message, message.replace(chosen, respelled)):
        query = f"{spelled}&signature={signature}&key_id={KEY_ID}".encode()
        with pytest.raises(PostbackRefused, match="repeated parameter"):
            parse("admob", RawRequest(method="GET", url="", query=query))


def _signed_by_google(signed: str, *, sent: str) -> RawRequest:
    key = load_pem_private_key(key_pair()[0].encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    signature = unpadded(key.sign(signed.encode(), ec.ECDSA(SHA256())))
    return RawRequest(method="GET", url="", query=f"{sent}&signature={signature}&key_id={KEY_ID}".encode())


def test_a_signature_over_the_query_as_it_is_sent_is_accepted_too() -> None:
    at = f"timestamp={NOW.timestamp() * 1000:.0f}&transaction_id=t"
    query = f"ad_unit=1&reward_amount=7&reward_item=Bits%20%26%20bobs&{at}"

    event = parse("admob", _signed_by_google(query, sent=query))

    assert (event.kind, event.amount, event.external_id) == (CREDIT, Decimal(7), "t")


def test_a_wallet_cannot_smuggle_a_parameter_by_encoding_another_one_twice() -> None:
    at = f"timestamp={NOW.timestamp() * 1000:.0f}&transaction_id=t"
    # What the wallet chose is `%41&reward_amount=1000`: decoded once more, this is not the text that Google signed.
    decoded = f"ad_unit=1&custom_data=%41&reward_amount=1000&reward_amount=1&{at}"

    with pytest.raises(PostbackRefused, match="repeated parameter"):
        parse("admob", _signed_by_google(decoded, sent=decoded))


def test_text_signed_by_google_decodes_to_the_same_query() -> None:
    at = f"timestamp={NOW.timestamp() * 1000:.0f}&transaction_id=t"
    # What a wallet chose is `x%26reward_amount%3D1000`, which Google encodes once more.
    decoded = f"ad_unit=1&custom_data=x%26reward_amount%3D1000&reward_amount=1&{at}"

    event = parse("admob", _signed_by_google(decoded, sent=decoded))

    assert (event.amount, event.external_id) == (Decimal(1), "t")


def test_a_report_cannot_be_sent_as_a_postback() -> None:
    request = request_of("tapjoy", new_reward(), secrets.token_hex(8))

    with pytest.raises(PostbackRefused):
        ADAPTERS["push-report"].verify(request, secrets=["x"], keys={})
