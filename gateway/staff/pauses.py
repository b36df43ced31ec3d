"""
Parts of the service that staff can pause and resume.

Each decision is an append-only row. The newest row of a part decides; a part without a row is not paused.
"""

from collections.abc import Iterator
from typing import Any

from prometheus_client.core import Metric

from gateway.common.errors import stated
from gateway.common.metrics import gauge, register
from gateway.common.statements import Statements, fill, literals
from gateway.staff.models import Pause

# Name → title of each part that staff can pause.
pausable: dict[str, str] = {}


class _Sql(Statements, file=__file__):
    is_paused: str


def switch(name: str, *, is_paused: bool, actor: Any, reason: str) -> Pause:
    """
    Pause the part of the service that has this name, or resume it.

    Raises:
        ReasonRequired: the reason is blank.
    """
    return Pause.objects.create(name=name, is_paused=is_paused, actor=actor, reason=stated(reason))


def is_paused(name: str) -> bool:
    newest = Pause.objects.filter(name=name).order_by("-id")
    return bool(newest.values_list("is_paused", flat=True).first())


def present() -> list[tuple[str, Pause | None]]:
    """Return each part's title and its newest decision, or None. Costs one statement."""
    newest = Pause.objects.order_by("name", "-id").distinct("name").select_related("actor")
    decisions = {decision.name: decision for decision in newest}
    return [(title, decisions.get(name)) for name, title in pausable.items()]


def paused() -> list[Pause]:
    """Return the decision that paused each paused part. Costs one statement."""
    return [decision for _, decision in present() if decision and decision.is_paused]


def is_paused_sql(name: str) -> str:
    """Return `is_paused` as an SQL expression; `name` must be a constant, because it is not escaped."""
    return fill(_Sql.is_paused, {"part": literals(name)})


@register
def _gauges() -> Iterator[Metric]:
    names = {decision.name for decision in paused()}
    for name, title in pausable.items():
        yield gauge(f"{name}_paused", f"Whether staff have paused {title} (1) or not (0).", name in names)
