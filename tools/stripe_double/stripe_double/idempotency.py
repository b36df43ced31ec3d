"""Idempotency keys: the first response is repeated for a day."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from stripe_double.account import Account
from stripe_double.errors import IdempotencyError, InvalidRequest
from stripe_double.http import Request, Response

_KIND = "_idempotent_response"
_KEPT_SECONDS = 86_400
_MAX_LENGTH = 255


class IdempotentResponses:
    """The saved responses by key; a key with a running request is rejected."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._running: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def running(self, key: str | None) -> Iterator[None]:
        """Reject other requests with the key during the block."""
        if key is None:
            yield
            return
        if len(key) > _MAX_LENGTH:
            raise InvalidRequest(f"Idempotency-Key is too long: at most {_MAX_LENGTH} characters.")
        self._begin(key)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(key)

    def find(self, request: Request) -> Response | None:
        """Return the saved response of the request's key; reject a key of a different request."""
        saved = self._account.store.get(_KIND, request.idempotency_key or "")
        if saved is None or saved["created"] <= self._account.now - _KEPT_SECONDS:
            return None
        if saved["path"] != request.path:
            raise IdempotencyError(
                "Keys for idempotent requests can only be used for the same endpoint they were first used for "
                f"('{request.path}' vs '{saved['path']}'). Try using a key other than '{saved['id']}' if you meant to "
                "execute a different request."
            )
        if saved["params"] != _digest(request):
            raise IdempotencyError(
                "Keys for idempotent requests can only be used with the same parameters they were first used with. "
                f"Try using a key other than '{saved['id']}' if you meant to execute a different request."
            )
        headers = {"Idempotent-Replayed": "true", "Original-Request": saved["request"]}
        return Response(saved["status"], saved["body"], headers)

    def save(self, request: Request, response: Response, request_id: str) -> None:
        """Save this response; call it in the transaction of the operation."""
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

    def _begin(self, key: str) -> None:
        with self._lock:
            if key in self._running:
                raise InvalidRequest(
                    "There is currently another in-progress request using this Idempotent Key (that probably means "
                    f"you submitted twice, and the other request is still going through): {key}. Please try again "
                    "later.",
                    code="idempotency_key_in_use",
                    status=409,
                )
            self._running.add(key)


def _digest(request: Request) -> str:
    return hashlib.sha256(json.dumps(request.form, sort_keys=True).encode()).hexdigest()
