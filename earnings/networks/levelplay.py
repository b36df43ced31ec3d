"""
Unity LevelPlay (ironSource): rewarded videos.

https://docs.unity.com/en-us/grow/levelplay/platform/settings/event-handlers
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from credits.models import EntrySource
from earnings.networks.base import (
    Adapter,
    PostbackEvent,
    PostbackRefused,
    PostbackResponse,
    PostbackResponses,
    RawRequest,
    SignedFields,
)
from earnings.networks.parameters import REFERENCE_LENGTH, event_of, is_reference, parameters
from earnings.networks.signatures import hex_md5, require_match

# Publishers choose the user's parameter name; these names are in the network's examples.
_USER_NAMES = ("userId", "appUserId", "userid")
_MINUTE = re.compile(r"[0-9]{12}", re.ASCII)
# A text of event, user and amount that can also be read with a reference as the user, by moving the boundaries.
_CAN_NAME = re.compile(rf".[0-9a-f]{{{REFERENCE_LENGTH}}}[-+0-9.eE]+$", re.ASCII | re.DOTALL)


class LevelPlay(Adapter):
    """
    MD5 of time, event, user, rewards and key, concatenated.

    The values are concatenated without separators, so the time must have its fixed length, and so must the user's
    reference if the text can contain one. Any other text names no user.
    """

    slug: ClassVar = "levelplay"
    title: ClassVar = "Unity LevelPlay"
    kind: ClassVar = EntrySource.VIDEO_ADS
    covers: ClassVar = frozenset({"external_id", "user", "amount", "occurred_at"})
    responses: ClassVar = PostbackResponses(
        ok=PostbackResponse(200, "{event_id}:OK"), reject=PostbackResponse(400, "refused")
    )
    # The network retries for 24 hours, then daily for a week.
    max_age: ClassVar = timedelta(days=9)
    template: ClassVar = (
        "userId=[USER_ID]&rewards=[REWARDS]&eventId=[EVENT_ID]&timestamp=[TIMESTAMP]&signature=[SIGNATURE]"
    )

    def verify(self, request: RawRequest, *, secrets: Sequence[str], keys: Mapping[str, str]) -> SignedFields:
        given = parameters(request.query)
        users = [given[name] for name in _USER_NAMES if name in given]
        if len(users) > 1:
            raise PostbackRefused("no usable user reference")
        signed = {
            "timestamp": given.get("timestamp", ""),
            "eventId": given.get("eventId", ""),
            "userId": users[0] if users else "",
            "rewards": given.get("rewards", ""),
        }
        if not is_reference(signed["userId"]) and _CAN_NAME.search(
            signed["eventId"] + signed["userId"] + signed["rewards"]
        ):
            raise PostbackRefused("no usable user reference")
        if not _MINUTE.fullmatch(signed["timestamp"]):
            raise PostbackRefused("no usable timestamp")
        require_match(
            given.get("signature", "").lower(), secrets=secrets, compute=hex_md5("".join(signed.values()))
        )
        return signed

    def parse(self, fields: SignedFields) -> PostbackEvent:
        """Read a reward; a negative one reverses the event."""
        try:
            occurred_at = datetime.strptime(fields["timestamp"], "%Y%m%d%H%M").replace(tzinfo=UTC)
        except ValueError as error:
            raise PostbackRefused("no usable timestamp") from error
        return event_of(fields, id_="eventId", user="userId", amount="rewards", occurred_at=occurred_at)
