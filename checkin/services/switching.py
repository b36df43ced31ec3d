"""Pause check-ins and let them go on, by name and with a reason."""

from checkin.models import CheckInSwitch
from gateway.common.errors import stated
from gateway.common.owner import ProfileOwner


def switch(*, is_open: bool, actor: ProfileOwner, reason: str) -> CheckInSwitch:
    """
    Decide from now on whether users may check in; one that is under way ends as it began.

    Raises:
        ReasonRequired: the reason is blank.
    """
    return CheckInSwitch.objects.create(is_open=is_open, actor_id=actor.pk, reason=stated(reason))
