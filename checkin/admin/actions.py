"""What staff do about check-ins, each through its service."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.html import format_html
from django.utils.safestring import SafeString

from checkin import queries
from checkin.admin.odds import odds_page
from checkin.models import CheckInSwitch, DropTable
from checkin.services import publishing, switching
from gateway.common.decisions import Decision, ReasonedAction, ReasonForm


def _switch(decision: Decision, *, is_open: bool) -> str:
    switching.switch(is_open=is_open, actor=decision.actor, reason=decision.reason)
    return "They go on." if is_open else "They are paused."


def _is_open(_: CheckInSwitch) -> bool:
    return not queries.is_paused()


PAUSE = ReasonedAction(
    name="pause",
    label="Pause check-ins",
    permission="checkin.add_checkinswitch",
    subject="Check-ins",
    effect=lambda _: "Nobody checks in until they are resumed; one that is under way ends as it began.",
    run=lambda _, decision: _switch(decision, is_open=False),
    applies_to=_is_open,
)
RESUME = ReasonedAction(
    name="resume",
    label="Resume check-ins",
    permission="checkin.add_checkinswitch",
    subject="Check-ins",
    effect=lambda _: "Users may check in again.",
    run=lambda _, decision: _switch(decision, is_open=True),
    applies_to=lambda row: not _is_open(row),
)


class PublishForm(ReasonForm):
    """The fingerprint of each table, as the approver was shown it."""

    reviewed = forms.CharField(widget=forms.HiddenInput)


def _reviewed(rows: Sequence[DropTable]) -> dict[str, Any]:
    return {"reviewed": " ".join(publishing.fingerprint_of(row) for row in rows)}


def _publish(row: DropTable, decision: Decision) -> str:
    reviewed = decision.answers["reviewed"].split()
    publishing.publish(table_id=row.pk, actor=decision.actor, reviewed=reviewed)
    return "It is in force."


def _publishing(row: DropTable) -> SafeString:
    """Return what is about to be in force, with its odds and what prevents it."""
    effect = f"It is in force for {row.badge} from now on, and never changes again."
    return format_html("{} {}{}", effect, " ".join(publishing.faults_of(row)), odds_page(row))


PUBLISH = ReasonedAction(
    name="publish",
    label="Publish",
    permission="checkin.publish_droptable",
    effect=_publishing,
    run=_publish,
    form=PublishForm,
    initial=_reviewed,
    applies_to=lambda row: row.published_at is None,
)
