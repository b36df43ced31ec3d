"""Pause the whole relay and let it go on, by name and with a reason."""

from gateway.common.errors import stated
from gateway.common.owner import ProfileOwner
from relay.models import RelaySwitch


def switch(*, is_open: bool, actor: ProfileOwner, reason: str) -> RelaySwitch:
    """
    Decide from now on whether new calls are accepted; what was accepted is broadcast and settled as ever.

    Raises:
        ReasonRequired: the reason is blank.
    """
    return RelaySwitch.objects.create(is_open=is_open, actor_id=actor.pk, reason=stated(reason))
