"""Runs over many items, such as a periodic task's, in which the error of one item does not end the run."""

import logging

from billiard.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, connection

from gateway.common.errors import DomainError
from gateway.common.leases import LeaseLost

logger = logging.getLogger(__name__)

# Celery's soft time limit. Services must not catch it.
OutOfTime = SoftTimeLimitExceeded


class Item:
    """A context for one item of a run, which logs and suppresses most errors."""

    def __init__(self, what: str, expected: tuple[type[Exception], ...]) -> None:
        self._what, self._expected = what, expected
        self.succeeded = False
        # Ended with an unexpected error.
        self.failed = False

    def __enter__(self) -> "Item":
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is None:
            self.succeeded = True
        elif not isinstance(error, Exception) or _ends_the_run(error):
            return False
        elif isinstance(error, self._expected):
            logger.warning("%s is retried in the next run: %s", self._what, type(error).__name__)
        else:
            self.failed = True
            logger.error("%s failed; the run continues", self._what, exc_info=error)
        return True


def isolated(what: str, *, expected: tuple[type[Exception], ...] = ()) -> Item:
    """
    Log and suppress the error of one item, so that the run continues; the next run retries the item.

    Errors of the `expected` types are logged as warnings, others with their traceback.

    Raises:
        DomainError: with `is_outage`: a node or Stripe is unavailable for the other items too.
        OutOfTime: the task must stop.
        LeaseLost: another process has taken over the work.
        OperationalError, InterfaceError: the database is unavailable.
    """
    return Item(what, expected)


def _ends_the_run(error: Exception) -> bool:
    """
    Return whether the other items would fail too.

    Django raises the same class for a lost connection as for a lock timeout, a deadlock and a statement timeout, which
    concern one item only.
    """
    if isinstance(error, OperationalError | InterfaceError):
        return not connection.is_usable()
    return isinstance(error, OutOfTime | LeaseLost) or (isinstance(error, DomainError) and error.is_outage)


class NothingSucceeded(Exception):
    """Every item of a sweep failed, so the cause is not in the items. Makes the task fail."""


class Sweep:
    """A run over many items, each of them `isolated`. A `DomainError` counts neither as success nor as failure."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._items: list[Item] = []

    def item(self, identifier: object) -> Item:
        item = isolated(f"{self.noun} {identifier}", expected=(DomainError,))
        self._items.append(item)
        return item

    @property
    def succeeded(self) -> int:
        return sum(item.succeeded for item in self._items)

    def finish(self) -> None:
        """
        End the sweep.

        Raises:
            NothingSucceeded: at least one item failed with an unexpected error, and none succeeded.
        """
        failed = sum(item.failed for item in self._items)
        if failed and not self.succeeded:
            raise NothingSucceeded(f"{failed} of {failed}: {self.noun}")
