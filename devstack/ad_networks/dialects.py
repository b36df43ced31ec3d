"""
One postback in the dialect of each network, written from the networks' documentation and not from our adapters.

`secret` is what the network and we share; for AdMob it is the PEM of a P-256 private key
whose public half the service has as verifier key `KEY_ID`.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, quote_plus, unquote

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

KEY_ID = "3335741209"
# The one in which the videos of AdMob are shown.
AD_UNIT = "2747237135"


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a network tells: somebody earned an amount, or lost it again."""

    external_id: str
    user: str
    amount: str
    at: datetime
    is_reversal: bool = False


@dataclass(frozen=True, kw_only=True)
class Sent:
    """How it is sent: the query, headers, and for visit links the last part of the path."""

    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    path_token: str | None = None


def _admob(told: Told, url: str, secret: str) -> Sent:
    fields = {
        "ad_network": "5450213213286189855",
        "ad_unit": AD_UNIT,
        "reward_amount": told.amount,
        "reward_item": "Credit%20pack",
        "timestamp": f"{told.at.timestamp() * 1000:.0f}",
        "transaction_id": told.external_id,
        "user_id": told.user,
    }
    text = "&".join(f"{name}={value}" for name, value in fields.items())
    key = load_pem_private_key(secret.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("AdMob signs with an elliptic curve key")
    signature = key.sign(unquote(text).encode(), ec.ECDSA(SHA256()))
    return Sent(query=f"{text}&signature={_base64url(signature)}&key_id={KEY_ID}")


def _levelplay(told: Told, url: str, secret: str) -> Sent:
    minute, rewards = told.at.astimezone(UTC).strftime("%Y%m%d%H%M"), _signed(told)
    signature = _md5(minute + told.external_id + told.user + rewards + secret)
    named = f"userId={told.user}&rewards={rewards}&eventId={quote(told.external_id)}"
    return Sent(query=f"{named}&itemName=credits&timestamp={minute}&signature={signature}")


def _tapjoy(told: Told, url: str, secret: str) -> Sent:
    amount = _signed(told)
    verifier = _md5(f"{told.external_id}:{told.user}:{amount}:{secret}")
    return Sent(query=f"snuid={told.user}&currency={amount}&id={told.external_id}&verifier={verifier}")


def _adgem(told: Told, url: str, secret: str) -> Sent:
    payout = "-0.25" if told.is_reversal else "0.25"
    query = (
        f"player_id={told.user}&amount={told.amount}&payout={payout}&transaction_id={told.external_id}"
        "&campaign_id=7&goal_name=Level%2010%20%28iOS%29"
    )
    return Sent(query=f"{query}&verifier={_hmac('sha256', f'{url}?{query}', secret).hex()}")


def _ayet(told: Told, url: str, secret: str) -> Sent:
    fields = {
        "transaction_id": f"r-{told.external_id}" if told.is_reversal else told.external_id,
        "external_identifier": told.user,
        "currency_amount": told.amount,
        "payout_usd": "-0.25" if told.is_reversal else "0.25",
        "is_chargeback": str(int(told.is_reversal)),
        "offer_name": "Lords & ladies",
    }
    ordered = "&".join(f"{name}={quote_plus(fields[name])}" for name in sorted(fields))
    query = "&".join(f"{name}={quote(value)}" for name, value in fields.items())
    header = _hmac("sha256", ordered, secret).hex()
    return Sent(query=query, headers={"X-Ayetstudios-Security-Hash": header})


def _bitlabs(told: Told, url: str, secret: str) -> Sent:
    kind = "RECONCILIATION" if told.is_reversal else "COMPLETE"
    query = f"uid={told.user}&tx={told.external_id}&val={_signed(told)}&raw=0.25&type={kind}"
    return Sent(query=f"{query}&hash={_hmac('sha1', f'{url}?{query}', secret).hex()}")


def _cpx(told: Told, url: str, secret: str) -> Sent:
    status = 2 if told.is_reversal else 1
    named = f"status={status}&trans_id={told.external_id}&user_id={told.user}&amount_local={told.amount}"
    return Sent(query=f"{named}&amount_usd=0.25&type=complete&hash={_md5(f'{told.external_id}-{secret}')}")


def _theoremreach(told: Told, url: str, secret: str) -> Sent:
    reversal = "&reversal=true" if told.is_reversal else ""
    query = f"user_id={told.user}&reward={told.amount}&currency=25&tx_id={told.external_id}{reversal}"
    return Sent(query=f"{query}&hash={_base64url(_hmac('sha1', f'{url}?{query}', secret))}")


def _visit(told: Told, url: str, secret: str) -> Sent:
    fields = {
        "amount": told.amount,
        "campaign": "autumn",
        "exp": int(told.at.timestamp()) + 3600,
        "jti": told.external_id,
        "user": told.user,
    }
    content = _base64url(json.dumps(fields).encode())
    return Sent(path_token=f"{content}.{_base64url(_hmac('sha256', content, secret))}")


DIALECTS: dict[str, Callable[[Told, str, str], Sent]] = {
    "admob": _admob,
    "levelplay": _levelplay,
    "tapjoy": _tapjoy,
    "adgem": _adgem,
    "ayet-studios": _ayet,
    "bitlabs": _bitlabs,
    "cpx-research": _cpx,
    "theoremreach": _theoremreach,
    "visit-link": _visit,
}
# These have no word for it.
WITHOUT_REVERSALS = frozenset({"admob", "visit-link"})


def speak(slug: str, told: Told, *, url: str, secret: str) -> Sent:
    """Return the postback; `url` is the whole address before the query, which some networks sign."""
    return DIALECTS[slug](told, url, secret)


def _signed(told: Told) -> str:
    return f"-{told.amount}" if told.is_reversal else told.amount


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _hmac(algorithm: str, text: str, secret: str) -> bytes:
    return hmac.new(secret.encode(), text.encode(), algorithm).digest()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
