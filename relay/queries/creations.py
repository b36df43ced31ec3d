"""Reads the profiles that sponsors requested."""

from datetime import datetime
from typing import NamedTuple

from gateway.common import db
from gateway.common.statements import Statements
from relay.models import SQL
from sponsors.models import Sponsor


class _Sql(Statements, file=__file__, shared=SQL):
    figures: str


class CreationFigures(NamedTuple):
    """Numbers of a sponsor's profiles, of those that have acted, and in credits the cost and the first credits."""

    created: int
    registered: int
    in_progress: int
    failed: int
    credits: int
    first_credits: int
    acted: int


def figures_of(sponsor: Sponsor, *, since: datetime) -> CreationFigures:
    """Return the figures of the profiles that the sponsor requested since a time."""
    return CreationFigures(*db.only_row(_Sql.figures, {"sponsor": sponsor.pk, "since": since}))
