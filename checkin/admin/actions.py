"""What staff do about check-ins, each through its service."""

from checkin import queries
from checkin.models import CheckInSwitch, DropTable
from checkin.services import publishing, switching
from gateway.common.decisions import Decision, StaffAction


def _switch(decision: Decision, *, is_open: bool) -> str:
    switching.switch(is_open=is_open, actor=decision.actor, reason=decision.reason)
    return "They go on." if is_open else "They are paused."


def _is_open(_: CheckInSwitch) -> bool:
    return not queries.is_paused()


PAUSE = StaffAction(
    name="pause",
    label="Pause check-ins",
    permission="checkin.add_checkinswitch",
    subject="Check-ins",
    effect=lambda _: "Nobody checks in until they are resumed; one that is under way ends as it began.",
    run=lambda _, decision: _switch(decision, is_open=False),
    applies_to=_is_open,
)
RESUME = StaffAction(
    name="resume",
    label="Resume check-ins",
    permission="checkin.add_checkinswitch",
    subject="Check-ins",
    effect=lambda _: "Users may check in again.",
    run=lambda _, decision: _switch(decision, is_open=True),
    applies_to=lambda row: not _is_open(row),
)


def _publish(row: DropTable, decision: Decision) -> str:
    publishing.publish(table_id=row.pk, actor=decision.actor)
    return "It is in force."


PUBLISH = StaffAction(
    name="publish",
    label="Publish",
    permission="checkin.publish_droptable",
    effect=lambda row: f"It is in force for {row.badge} from now on, and never changes again.",
    run=_publish,
    applies_to=lambda row: row.published_at is None,
)
