"""The first answer to each idempotency key, given again for a day."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from devstack.stripe.state.account import Account
from devstack.stripe.state.things import Thing
from devstack.stripe.wire.exchange import Request, Response
from devstack.stripe.wire.refusals import IdempotencyRefused, Invalid

_KIND = "_answer"
_KEPT_SECONDS = 86_400
_LONGEST = 255


class Answers:
    """What was answered under each key; a key whose request still runs is refused."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._running: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def running(self, key: str | None) -> Iterator[None]:
        """Refuse other requests with the key during the block."""
        if key is None:
            yield
            return
        if len(key) > _LONGEST:
            raise Invalid(f"Idempotency-Key is too long: at most {_LONGEST} characters.")
        self._enter(key)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(key)

    def known(self, request: Request) -> Response | None:
        """Return the first answer under the request's key; refuse a key that was used for something else."""
        kept = self._kept(request.idempotency_key)
        if kept is None:
            return None
        if kept["path"] != request.path:
            raise IdempotencyRefused(
                "Keys for idempotent requests can only be used for the same endpoint they were first used for "
                f"('{request.path}' vs '{kept['path']}'). Try using a key other than '{kept['id']}' if you meant to "
                "execute a different request."
            )
        if kept["params"] != _digest(request):
            raise IdempotencyRefused(
                "Keys for idempotent requests can only be used with the same parameters they were first used with. "
                f"Try using a key other than '{kept['id']}' if you meant to execute a different request."
            )
        headers = {"Idempotent-Replayed": "true", "Original-Request": kept["request"]}
        return Response(kept["status"], kept["body"], headers)

    def keep(self, request: Request, response: Response, request_id: str) -> None:
        """Give this answer from now on; call it in the unit that does the work."""
        key = request.idempotency_key
        if key is None:
            return
        self._account.store.remove(_KIND, key)
        self._account.add(
            {
                "object": _KIND,
                "id": key,
                "path": request.path,
                "params": _digest(request),
                "status": response.status,
                "body": response.body,
                "request": request_id,
                "created": self._account.now,
            }
        )

    def _kept(self, key: str | None) -> Thing | None:
        kept = self._account.store.get(_KIND, key) if key is not None else None
        return kept if kept and kept["created"] > self._account.now - _KEPT_SECONDS else None

    def _enter(self, key: str) -> None:
        with self._lock:
            if key in self._running:
                raise Invalid(
                    "There is currently another in-progress request using this Idempotent Key (that probably means "
                    f"you submitted twice, and the other request is still going through): {key}. Please try again "
                    "later.",
                    code="idempotency_key_in_use",
                    status=409,
                )
            self._running.add(key)


def _digest(request: Request) -> str:
    return hashlib.sha256(json.dumps(request.form, sort_keys=True).encode()).hexdigest()
