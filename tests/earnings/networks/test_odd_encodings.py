"""What networks print and what lies between: floats, raw bytes, bare parameters, macros and tidied addresses."""

import hmac
import json
import string
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import pytest

from devstack.ad_networks.signing import sign
from earnings.models import PostbackKind
from earnings.networks import ADAPTERS
from earnings.networks.base import MacroNotReplaced, PostbackRefused, RawRequest
from earnings.networks.signatures import unpadded
from tests.earnings.ad_networks import SLUGS, new_reward, new_secret, parse, request_of

_WHOLE_URL = {"adgem": ("verifier", "sha256"), "bitlabs": ("hash", "sha1"), "theoremreach": ("hash", "sha1")}
_PAYOUTS = {
    "adgem": b"payout=",
    "ayet-studios": b"payout_usd=",
    "bitlabs": b"raw=",
    "cpx-research": b"amount_usd=",
}
_URL = "http://testserver/api/postbacks/x/y"


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize(
    ("printed", "amount"),
    [
        ("1e3", "1000"),
        ("12.5E-1", "1.25"),
        ("0.30000000000000004", "0.3"),
        ("0.47999999999999998", "0.48"),
        ("7.", "7"),
        (".5", "0.5"),
        ("1337500000000", "1337500000000"),
    ],
)
def test_a_deciding_amount_is_any_decimal_number(slug: str, printed: str, amount: str) -> None:
    secret = new_secret(slug)

    event = parse(slug, request_of(slug, new_reward(amount=printed), secret), secret)

    assert (event.kind, event.amount) == (PostbackKind.CREDIT, Decimal(amount))


def _signed(slug: str, query: bytes, secret: str, url: str = _URL) -> bytes:
    """Sign a query as the networks do that sign the whole address."""
    name, algorithm = _WHOLE_URL[slug]
    digest = hmac.new(secret.encode(), url.encode() + b"?" + query, algorithm)
    text = digest.hexdigest()
    if slug == "theoremreach":
        text = unpadded(digest.digest())
    return query + f"&{name}={text}".encode()


def _unsigned(slug: str, **changes: Any) -> bytes:
    """Return the query of a reward before its signature."""
    query = sign(slug, new_reward(**changes), url=_URL, secret="any").query.encode()
    return query.rpartition(b"&%s=" % _WHOLE_URL[slug][0].encode())[0]


@pytest.mark.parametrize("slug", sorted(_PAYOUTS))
@pytest.mark.parametrize(
    ("printed", "payout"),
    [
        ("0.0012000000000000001", "0.0012"),
        ("1e-05", "0.00001"),
        ("0.47999999999999998", "0.48"),
        ("0.30000000000000004", "0.3"),
        ("n/a", None),
        ("", None),
        ("1e99", None),
        ("NaN", None),
    ],
)
def test_a_payout_for_information_refuses_nothing(slug: str, printed: str, payout: str | None) -> None:
    secret = new_secret(slug)
    name = _PAYOUTS[slug].decode().removesuffix("=")
    fields = {
        "adgem": {"transaction_id": "t", "amount": "5"},
        "ayet-studios": {"transaction_id": "t", "currency_amount": "5"},
        "bitlabs": {"tx": "t", "val": "5"},
        "cpx-research": {"trans_id": "t", "amount_local": "5", "status": "1"},
    }[slug]

    event = ADAPTERS[slug].parse({**fields, name: printed})

    assert (event.kind, event.amount) == (PostbackKind.CREDIT, Decimal(5))
    assert event.payout_usd == (None if payout is None else Decimal(payout))
    # As the network signs it, too.
    if slug in _WHOLE_URL and printed:
        query = _signed(slug, _unsigned(slug).replace(b"=0.25", b"=" + printed.encode()), secret)
        sent = RawRequest(method="GET", url=_URL, query=query)
        assert parse(slug, sent, secret).kind == PostbackKind.CREDIT


@pytest.mark.parametrize("printed", ["-0.30000000000000004", "-1e99", "-1e-05"])
def test_a_negative_payout_of_adgem_reverses_whatever_its_size(printed: str) -> None:
    event = ADAPTERS["adgem"].parse({"transaction_id": "t", "amount": "5", "payout": printed})

    assert event.kind == PostbackKind.REVERSAL


def test_numbers_of_a_json_body_are_any_json_numbers() -> None:
    data = {
        "conversion_id": "c",
        "player_id": "p",
        "amount": 1e22,
        "payout": 0.1 + 0.2,
        "nonpayable_install_goal": False,
    }
    body = json.dumps({"data": data}).encode()
    headers = {"signature": hmac.new(b"key", body, "sha256").hexdigest()}

    event = parse("adgem", RawRequest(method="POST", url="", query=b"", body=body, headers=headers), "key")

    assert (event.amount, event.payout_usd) == (Decimal(10**22), Decimal("0.3"))


_OTHERS = [b"&&", b"&x", b"&name=M%FCller", b"&x&&y=%FC%&z", b"&n=\xfc", b"&%FC=1", b"&a=b=c", b"&"]


@pytest.mark.parametrize("slug", sorted(_WHOLE_URL))
@pytest.mark.parametrize("other", _OTHERS)
def test_an_address_is_verified_as_its_raw_bytes(slug: str, other: bytes) -> None:
    secret, reward = new_secret(slug), new_reward()
    query = sign(slug, reward, url=_URL, secret="").query.encode()
    first, _, rest = query.rpartition(b"&")[0].partition(b"&")
    for text in (first + other + b"&" + rest, first + b"&" + rest + other):
        event = parse(slug, RawRequest(method="GET", url=_URL, query=_signed(slug, text, secret)), secret)

        assert (event.external_id, event.user_ref, event.amount) == (
            reward.external_id,
            reward.user,
            Decimal(reward.amount),
        )


@pytest.mark.parametrize("slug", ["levelplay", "tapjoy", "cpx-research", "ayet-studios"])
@pytest.mark.parametrize("other", [b"&&", b"&"])
def test_an_empty_parameter_refuses_nothing(slug: str, other: bytes) -> None:
    secret, reward = new_secret(slug), new_reward()
    request = request_of(slug, reward, secret)

    assert (
        parse(slug, replace(request, query=request.query + other), secret).external_id == reward.external_id
    )


@pytest.mark.parametrize("slug", ["levelplay", "tapjoy", "cpx-research"])
@pytest.mark.parametrize("other", [b"&x", b"&x=%FC", b"&%FC=1"])
def test_a_parameter_that_is_not_signed_refuses_nothing(slug: str, other: bytes) -> None:
    secret, reward = new_secret(slug), new_reward()
    request = request_of(slug, reward, secret)

    assert (
        parse(slug, replace(request, query=request.query + other), secret).external_id == reward.external_id
    )


@pytest.mark.parametrize(
    ("sent", "signed"), [("zzz=M%FCller", "zzz=M%FCller"), ("zzz", "zzz="), ("zzz=%", "zzz=%25")]
)
def test_ayet_studios_signs_raw_bytes_and_bare_names(sent: str, signed: str) -> None:
    secret, reward = new_secret("ayet-studios"), new_reward()
    request = request_of("ayet-studios", reward, secret)
    named = request.query.decode().replace("%20", "+").split("&")
    message = "&".join(sorted([*named, signed]))
    headers = {
        "x-ayetstudios-security-hash": hmac.new(secret.encode(), message.encode(), "sha256").hexdigest()
    }
    query = request.query + b"&" + sent.encode()

    event = parse("ayet-studios", replace(request, query=query, headers=headers), secret)

    assert event.external_id == reward.external_id


def _sorted(query: bytes) -> bytes:
    return b"&".join(sorted(query.split(b"&")))


def _plus(query: bytes) -> bytes:
    return query.replace(b"%20", b"+")


def _decoded(query: bytes) -> bytes:
    return query.replace(b"%28", b"(").replace(b"%29", b")")


@pytest.mark.parametrize(
    ("slug", "tidy"),
    [
        ("admob", _sorted),
        ("admob", _decoded),
        ("bitlabs", _sorted),
        ("adgem", _sorted),
        ("adgem", _plus),
        ("adgem", _decoded),
    ],
)
def test_an_address_that_a_cdn_has_tidied_is_verified_in_its_canonical_form(
    slug: str, tidy: Callable[[bytes], bytes]
) -> None:
    secret, reward = new_secret(slug), new_reward()
    request = request_of(slug, reward, secret)

    event = parse(slug, replace(request, query=tidy(request.query)), secret)

    assert event.external_id == reward.external_id


def test_a_slash_at_the_end_of_the_path_is_tolerated() -> None:
    secret = new_secret("bitlabs")
    request = request_of("bitlabs", new_reward(), secret)

    for url in (request.url + "/", request.url):
        assert parse("bitlabs", replace(request, url=url), secret).kind == PostbackKind.CREDIT


def test_a_parameter_that_was_added_after_the_signature_is_named_as_the_cause() -> None:
    secret = new_secret("bitlabs")
    request = request_of("bitlabs", new_reward(), secret)

    with pytest.raises(PostbackRefused, match="not the last parameter"):
        parse("bitlabs", replace(request, query=request.query + b"&utm_source=x"), secret)


# The name of the id, and the other fields that the adapter needs.
_FIELDS = {
    "admob": ("transaction_id", {"reward_amount": "5", "timestamp": "1764115200000"}),
    "levelplay": ("eventId", {"rewards": "5", "timestamp": "202611211234"}),
    "tapjoy": ("id", {"currency": "5"}),
    "adgem": ("transaction_id", {"amount": "5"}),
    "ayet-studios": ("transaction_id", {"currency_amount": "5"}),
    "bitlabs": ("tx", {"val": "5"}),
    "cpx-research": ("trans_id", {"amount_local": "5", "status": "1"}),
    "theoremreach": ("tx_id", {"reward": "5"}),
    "visit-link": ("jti", {"amount": "5", "exp": "1764115200"}),
    "push-report": ("row_id", {"amount": "5", "user_reference": "0" * 32}),
}
_MACROS = [
    "{transaction_id}",
    "{trans_id}",
    "${TX}",
    "{{id}}",
    "[EVENT_ID]",
    "[%TX%]",
    "%TX%",
    "<id>",
    "#ID#",
    "__ID__",
]


def test_every_adapter_is_tried_with_macros() -> None:
    assert set(_FIELDS) == set(ADAPTERS)


@pytest.mark.parametrize("slug", sorted(_FIELDS))
@pytest.mark.parametrize("macro", [*_MACROS, "r-{sub1}", "{offer:id}"])
def test_a_macro_that_was_not_replaced_is_refused_by_name(slug: str, macro: str) -> None:
    name, others = _FIELDS[slug]

    with pytest.raises(MacroNotReplaced, match=f"the macro .* of {name} was not replaced"):
        ADAPTERS[slug].parse({**others, name: macro})


@pytest.mark.parametrize("slug", sorted(_FIELDS))
@pytest.mark.parametrize(
    "id_",
    ["{3F2504E0-4F89-11D3-9A0C-0305E82C3301}", "a_b__c", "100%", "[1]", "f00d#1#", "%20%20", "a__ID__b"],
)
def test_an_id_that_only_looks_like_a_macro_is_kept(slug: str, id_: str) -> None:
    name, others = _FIELDS[slug]

    assert ADAPTERS[slug].parse({**others, name: id_}).external_id == id_


def test_a_macro_instead_of_an_amount_is_refused_by_name() -> None:
    with pytest.raises(MacroNotReplaced, match="amount"):
        ADAPTERS["adgem"].parse({"transaction_id": "t", "amount": "{amount}"})


def _values_encoded(query: bytes, left: str, *, is_lower: bool, is_form: bool) -> bytes:
    """Return the query as an encoder writes it that leaves these characters, letters and digits as they are."""

    def encoded(value: str) -> str:
        kept = string.ascii_letters + string.digits + left
        hexadecimal = "%{:02x}" if is_lower else "%{:02X}"
        text = "".join(
            byte if (byte := chr(number)) in kept else hexadecimal.format(number) for number in value.encode()
        )
        return text.replace("%20", "+") if is_form else text

    return "&".join(f"{name}={encoded(value)}" for name, value in parse_qsl(query.decode())).encode()


@pytest.mark.parametrize("slug", sorted(_WHOLE_URL))
@pytest.mark.parametrize("is_form", [False, True])
@pytest.mark.parametrize("is_lower", [False, True])
@pytest.mark.parametrize("left", ["-._~", "-._~!*'()", "-._*", "-._", "._~", ""])
def test_an_address_whose_percent_forms_a_proxy_changed_is_the_same_address(
    slug: str, left: str, is_lower: bool, is_form: bool
) -> None:
    secret, query = new_secret(slug), _unsigned(slug) + b"&note=a:-b (c)*.d_~!'/e"
    signed = _values_encoded(query, left, is_lower=is_lower, is_form=is_form)
    signature = _signed(slug, signed, secret)[len(signed) :]
    arrived = _values_encoded(query, "-._~", is_lower=not is_lower, is_form=False)

    sent = RawRequest(method="GET", url=_URL, query=arrived + signature)

    assert parse(slug, sent, secret).kind == PostbackKind.CREDIT
    changed = RawRequest(method="GET", url=_URL, query=arrived.replace(b"note=a", b"note=A") + signature)
    with pytest.raises(PostbackRefused):
        parse(slug, changed, secret)
