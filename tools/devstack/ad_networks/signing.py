"""
Signs postbacks as each network does, written from the networks' documentation and not from our adapters.

`secret` is the shared secret; for AdMob it is the PEM of a P-256 private key whose public key the service has as
verifier key `KEY_ID`.
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
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

KEY_ID = "3335741209"
# AdMob's rewarded ad unit.
AD_UNIT = "2747237135"


@dataclass(frozen=True, kw_only=True)
class Reward:
    """The content of a postback: a user earned an amount, or it was reversed."""

    external_id: str
    user: str
    amount: str
    at: datetime
    is_reversal: bool = False


@dataclass(frozen=True, kw_only=True)
class SignedPostback:
    """A signed request: the query, headers, and for visit links the last segment of the path."""

    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    path_token: str | None = None


def new_key_pair() -> tuple[str, str]:
    """Return a new P-256 key pair as PEM: private, public."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def _admob(reward: Reward, url: str, secret: str) -> SignedPostback:
    fields = {
        "ad_network": "5450213213286189855",
        "ad_unit": AD_UNIT,
        "reward_amount": reward.amount,
        "reward_item": "Credit%20pack",
        "timestamp": f"{reward.at.timestamp() * 1000:.0f}",
        "transaction_id": reward.external_id,
        "user_id": reward.user,
    }
    text = "&".join(f"{name}={value}" for name, value in fields.items())
    key = load_pem_private_key(secret.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("AdMob signs with an elliptic curve key")
    signature = key.sign(unquote(text).encode(), ec.ECDSA(SHA256()))
    return SignedPostback(query=f"{text}&signature={_base64url(signature)}&key_id={KEY_ID}")


def _levelplay(reward: Reward, url: str, secret: str) -> SignedPostback:
    minute, rewards = reward.at.astimezone(UTC).strftime("%Y%m%d%H%M"), _signed(reward)
    signature = _md5(minute + reward.external_id + reward.user + rewards + secret)
    named = f"userId={reward.user}&rewards={rewards}&eventId={quote(reward.external_id)}"
    return SignedPostback(query=f"{named}&itemName=credits&timestamp={minute}&signature={signature}")


def _tapjoy(reward: Reward, url: str, secret: str) -> SignedPostback:
    amount = _signed(reward)
    verifier = _md5(f"{reward.external_id}:{reward.user}:{amount}:{secret}")
    return SignedPostback(
        query=f"snuid={reward.user}&currency={amount}&id={reward.external_id}&verifier={verifier}"
    )


def _adgem(reward: Reward, url: str, secret: str) -> SignedPostback:
    payout = "-0.25" if reward.is_reversal else "0.25"
    query = (
        f"player_id={reward.user}&amount={reward.amount}&payout={payout}&transaction_id={reward.external_id}"
        "&campaign_id=7&goal_name=Level%2010%20%28iOS%29"
    )
    return SignedPostback(query=f"{query}&verifier={_hmac('sha256', f'{url}?{query}', secret).hex()}")


def _ayet(reward: Reward, url: str, secret: str) -> SignedPostback:
    fields = {
        "transaction_id": f"r-{reward.external_id}" if reward.is_reversal else reward.external_id,
        "external_identifier": reward.user,
        "currency_amount": reward.amount,
        "payout_usd": "-0.25" if reward.is_reversal else "0.25",
        "is_chargeback": str(int(reward.is_reversal)),
        "offer_name": "Lords & ladies",
    }
    ordered = "&".join(f"{name}={quote_plus(fields[name])}" for name in sorted(fields))
    query = "&".join(f"{name}={quote(value)}" for name, value in fields.items())
    header = _hmac("sha256", ordered, secret).hex()
    return SignedPostback(query=query, headers={"X-Ayetstudios-Security-Hash": header})


def _bitlabs(reward: Reward, url: str, secret: str) -> SignedPostback:
    kind = "RECONCILIATION" if reward.is_reversal else "COMPLETE"
    # Without stateful callbacks the state is empty.
    query = (
        f"uid={reward.user}&tx={reward.external_id}&val={_signed(reward)}&raw=0.25&type={kind}&state=&ref="
    )
    return SignedPostback(query=f"{query}&hash={_hmac('sha1', f'{url}?{query}', secret).hex()}")


def _cpx(reward: Reward, url: str, secret: str) -> SignedPostback:
    status = 2 if reward.is_reversal else 1
    named = (
        f"status={status}&trans_id={reward.external_id}&user_id={reward.user}&amount_local={reward.amount}"
    )
    return SignedPostback(
        query=f"{named}&amount_usd=0.25&type=complete&hash={_md5(f'{reward.external_id}-{secret}')}"
    )


def _theoremreach(reward: Reward, url: str, secret: str) -> SignedPostback:
    reversal = "&reversal=true" if reward.is_reversal else ""
    query = f"user_id={reward.user}&reward={reward.amount}&currency=25&tx_id={reward.external_id}{reversal}"
    return SignedPostback(query=f"{query}&hash={_base64url(_hmac('sha1', f'{url}?{query}', secret))}")


def _visit(reward: Reward, url: str, secret: str) -> SignedPostback:
    fields = {
        "amount": reward.amount,
        "campaign": "autumn",
        "exp": int(reward.at.timestamp()) + 3600,
        "jti": reward.external_id,
        "user": reward.user,
    }
    content = _base64url(json.dumps(fields).encode())
    return SignedPostback(path_token=f"{content}.{_base64url(_hmac('sha256', content, secret))}")


SIGNERS: dict[str, Callable[[Reward, str, str], SignedPostback]] = {
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
# These networks send no reversals.
WITHOUT_REVERSALS = frozenset({"admob", "visit-link"})


def sign(slug: str, reward: Reward, *, url: str, secret: str) -> SignedPostback:
    """Return the postback; `url` is the address before the query, which some networks sign."""
    return SIGNERS[slug](reward, url, secret)


def _signed(reward: Reward) -> str:
    return f"-{reward.amount}" if reward.is_reversal else reward.amount


def _md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _hmac(algorithm: str, text: str, secret: str) -> bytes:
    return hmac.new(secret.encode(), text.encode(), algorithm).digest()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
