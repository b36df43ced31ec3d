"""Send written postbacks to the service's one function for them, as often as it takes."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.db import OperationalError
from django.utils import timezone

from devstack.ad_networks.stage import SENDER
from earnings.networks.base import RawRequest
from earnings.services import postbacks as earnings_postbacks

_PATIENCE = 5


def send(postbacks: Iterable[dict[str, Any]]) -> Counter[str]:
    """Send one after the other and count the answers by status; a 503 of the records is sent again."""
    answers: Counter[str] = Counter()
    for postback in postbacks:
        for _ in range(_PATIENCE):
            status = _status(postback)
            answers[status] += 1
            if status != "503":
                break
    return answers


def _status(postback: dict[str, Any]) -> str:
    request = RawRequest(
        method="GET",
        url=postback["url"],
        query=postback["query"].encode(),
        headers=postback["headers"],
        path_token=postback["path_token"],
        sender=SENDER,
    )
    try:
        return str(
            earnings_postbacks.receive(slug=postback["slug"], request=request, now=timezone.now()).status
        )
    except OperationalError:
        return "503"
