"""Isolation: one item that cannot be worked on must not stop those behind it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.chain.errors import NodeUnavailable
from gateway.common.db import would_stop_all

logger = logging.getLogger(__name__)


@contextmanager
def isolated(what: str) -> Iterator[None]:
    """
    Log the error of one item of a run and let the run go on; the next run tries the item again.

    Raises:
        NodeUnavailable: no node answered, so the others would fare no better.
        OutOfTime: the worker must stop.
        OperationalError, InterfaceError: the database is gone for the others, too.
    """
    try:
        yield
    except NodeUnavailable:
        raise
    except Exception as error:
        if would_stop_all(error):
            raise
        logger.exception("%s failed; the others go on", what)
