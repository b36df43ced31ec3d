"""Access tokens that are wrong in one way."""

import json
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import jwt
from django.conf import settings
from django.utils.timezone import now
from jwt.utils import base64url_encode

from tests.factories import random_address
from users.keys import signing_keys

# Ends that no calendar holds, or that are no number of seconds at all.
ODD_EXPIRIES = (10**15, 10**18, 10**30, 10**400, 1e300, float("inf"), float("nan"), [10**10], "soon")


def claims(without: str = "", **changes: Any) -> dict[str, Any]:
    """Return the claims of a good access token, with changes and without one."""
    moment: datetime = now()
    good = {
        "token_type": "access",
        "iss": settings.SIMPLE_JWT["ISSUER"],
        "aud": settings.SIMPLE_JWT["AUDIENCE"],
        "iat": int(moment.timestamp()),
        "exp": int((moment + timedelta(minutes=5)).timestamp()),
        "jti": uuid.uuid4().hex,
        "sub": "1",
        "address": random_address(),
        "sid": str(uuid.uuid4()),
        "ctl": random_address(),
    }
    return {name: value for name, value in {**good, **changes}.items() if name != without}


def forged_token(
    *, key: Any = None, algorithm: str = "ES256", header: dict[str, Any] | None = None, **changes: Any
) -> str:
    """Return a token signed by our first key unless another is given."""
    own = signing_keys()[0]
    headers = {"kid": own.kid, "typ": "at+jwt", **(header or {})}
    named = {name: value for name, value in headers.items() if value is not None}
    return jwt.encode(claims(**changes), key or own.private_key, algorithm=algorithm, headers=named)


def raw_token(algorithm: str, sign: Callable[[bytes], bytes]) -> str:
    """Return a token put together by hand, as the library refuses to do."""
    header = {"alg": algorithm, "typ": "at+jwt", "kid": signing_keys()[0].kid}
    head = b".".join(base64url_encode(json.dumps(part).encode()) for part in (header, claims()))
    return (head + b"." + base64url_encode(sign(head))).decode()
