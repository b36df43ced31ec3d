"""
A signer in another process, and database transactions that need its signatures.

A process makes no network request while a transaction is open. If a transaction needs a signature, `signed_outside`
rolls it back, fetches the signature, and runs the transaction again with it. A signature that is not used after all is
harmless, because its bytes are not sent.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import transaction

from gateway.chain.errors import SignerUnavailable
from signer.client import Certificates, SignerAway, SignerClient
from signer.messages import KeyList, SigningRequest
from signer.transactions import PolicyViolation, SignedTransaction, UnsignedTransaction

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

RETRY_AFTER_SECONDS = 2
# How long the signer's addresses are cached, and how long after a failure they are read again.
_KEYS_SECONDS, _FAILURE_SECONDS = 30.0, 3.0
# The maximum number of runs: rows may change between two runs, so that each needs another signature.
_MAX_RUNS = 4


class _SignatureNeeded(BaseException):
    """Rolls back a transaction that needs this signature; a BaseException, so that no error handler catches it."""

    def __init__(self, request: SigningRequest) -> None:
        super().__init__("a signature is needed")
        self.request = request


# The signatures fetched for this thread's transaction; None outside `signed_outside`.
_fetched: ContextVar[dict[SigningRequest, SignedTransaction] | None] = ContextVar("fetched", default=None)


def signed_outside(run: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """
    Run a function in its own transaction; run it again for each signature that a remote signer must make.

    With local keys, it runs once and signs within the transaction.
    """

    @wraps(run)
    def wrapped(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        fetched: dict[SigningRequest, SignedTransaction] = {}
        for _ in range(_MAX_RUNS):
            token = _fetched.set(fetched)
            try:
                with transaction.atomic(durable=True):
                    return run(*args, **kwargs)
            except _SignatureNeeded as needed:
                request = needed.request
            finally:
                _fetched.reset(token)
            fetched[request] = remote_signer().sign_request(request)
        raise SignerUnavailable(
            "The transaction changed whenever it was to be signed. Repeat the call.",
            retry_after=RETRY_AFTER_SECONDS,
        )

    return wrapped


class RemoteSigner:
    """
    Signs through a signer's socket. Its addresses are read again every half minute, so that keys may change.

    While the signer is failing, requests are refused at once, and only the first one waits for the timeout. `health` is
    a client of the same signer with a short timeout.
    """

    is_remote = True
    # How long requests are refused at once after a failure. After that, the health check decides.
    pause_seconds = 1.0
    # The timeout of the health check.
    health_seconds = 1.0

    def __init__(self, client: SignerClient, health: SignerClient) -> None:
        self._client, self._health = client, health
        self._is_failing = False
        self.refused_until = self._signed_at = 0.0
        self._health_lock = threading.Lock()
        self._cached_keys: KeyList | None = None
        self._refresh_at = 0.0
        self._refresh_lock = threading.Lock()

    def addresses(self) -> list[str]:
        return list(self._keys().relayers)

    def spare_addresses(self) -> list[str]:
        return list(self._keys().spare)

    def treasury_address(self) -> str:
        """Return the address of the treasury whose key the signer has; empty if it has none."""
        return self._keys().treasury

    def chain_ids(self) -> list[int]:
        """
        Return the ids of the chains for which the signer signs.

        Raises:
            SignerUnavailable: the signer does not respond.
        """
        try:
            return self._client.chains()
        except SignerAway as error:
            raise _away() from error

    def require_available(self) -> None:
        if not self._is_failing:
            return
        if time.monotonic() < self.refused_until or not self._health_lock.acquire(blocking=False):
            raise _away()
        try:
            self._health.read("/health")
            self._is_failing = False
        except SignerAway as error:
            raise self._failed() from error
        finally:
            self._health_lock.release()

    def responds(self) -> bool:
        """Return whether the signer has just signed, or passes its health check."""
        if time.monotonic() - self._signed_at < self.pause_seconds:
            return True
        with suppress(SignerAway):
            self._health.read("/health")
            return True
        return False

    def sign(self, *, relayer: str, transaction: UnsignedTransaction) -> SignedTransaction:
        return self.sign_request(SigningRequest(relayer, transaction))

    def sign_request(self, request: SigningRequest) -> SignedTransaction:
        """
        Sign for a relayer or the treasury; within `signed_outside`, roll back unless the signature was fetched.

        Raises:
            PolicyViolation, SignerUnavailable: see `Signer.sign`.
        """
        fetched = _fetched.get()
        if fetched is not None:
            if request not in fetched:
                raise _SignatureNeeded(request)
            return fetched[request]
        (outcome,) = self.sign_batch([request])
        if isinstance(outcome, PolicyViolation) and outcome.refusal == "used-up":
            raise limit_reached() from outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def sign_batch(self, requests: Sequence[SigningRequest]) -> list[SignedTransaction | Exception]:
        self.require_available()
        try:
            outcomes = self._client.sign(requests)
            self._signed_at = time.monotonic()
            return [_away() if outcome is None else outcome for outcome in outcomes]
        except SignerAway as error:
            raise self._failed() from error

    def _failed(self) -> SignerUnavailable:
        self.refused_until = time.monotonic() + self.pause_seconds
        self._is_failing = True
        return _away()

    def _keys(self) -> KeyList:
        if (self._cached_keys is None or time.monotonic() >= self._refresh_at) and self._refresh_lock.acquire(
            blocking=self._cached_keys is None
        ):
            try:
                self._refresh()
            finally:
                self._refresh_lock.release()
        if self._cached_keys is None:
            raise _away()
        return self._cached_keys

    def _refresh(self) -> None:
        if time.monotonic() < self._refresh_at:
            return
        try:
            self._cached_keys = self._client.keys()
            self._refresh_at = time.monotonic() + _KEYS_SECONDS
        except SignerAway:
            self._refresh_at = time.monotonic() + _FAILURE_SECONDS


def _away() -> SignerUnavailable:
    return SignerUnavailable("The signer does not respond. Repeat the call.", retry_after=RETRY_AFTER_SECONDS)


def limit_reached() -> SignerUnavailable:
    """Return the error for a call that exceeds the relayer's gas limit of this hour; the signer may sign it later."""
    detail = "The relayers may spend no more gas for now. Repeat the call later."
    return SignerUnavailable(detail, retry_after=60)


@cache
def remote_signer() -> RemoteSigner:
    """Return the signer at `SIGNER_URL`; created once per process."""
    folder = settings.SIGNER_TLS_FOLDER
    certificates = Certificates.in_folder(folder) if folder else None
    seconds: float = settings.SIGNER_TIMEOUT_SECONDS
    return RemoteSigner(
        *(
            SignerClient(settings.SIGNER_URL, timeout_seconds=timeout, certificates=certificates)
            for timeout in (seconds, min(seconds, RemoteSigner.health_seconds))
        )
    )
