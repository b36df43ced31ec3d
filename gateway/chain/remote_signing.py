"""
A signer in another process, and how transactions of the database go together with it.

Nothing leaves the process while a transaction is open. So one that needs a signature is rolled back, the signature is
fetched, and the transaction runs again with it: `signed_outside`. A signature that is not used after all does no
harm, because its bytes are sent nowhere.
"""

import threading
import time
from collections.abc import Callable, Sequence
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
# How long the signer's addresses are known, and how long a failure to ask for them.
_KEYS_SECONDS, _FAILURE_SECONDS = 30.0, 3.0
# How long nobody asks a signer that did not answer; then one asks for its health, and waits so long.
_PAUSE_SECONDS, _HEALTH_SECONDS = 1.0, 1.0
# Rows may change between two runs, and ask for another signature each time.
_MOST_RUNS = 4


class _SignatureMissing(BaseException):
    """Ends a transaction that cannot go on without this signature; no handler of errors must stop it."""

    def __init__(self, request: SigningRequest) -> None:
        super().__init__("a signature is missing")
        self.request = request


# The signatures that the transaction of this thread has been given; None where none is open.
_given: ContextVar[dict[SigningRequest, SignedTransaction] | None] = ContextVar("given", default=None)


def signed_outside(run: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """
    Run a function in a transaction of its own, and where it needs a signature from elsewhere, again with it.

    With keys in this process it runs once, and signs inside.
    """

    @wraps(run)
    def wrapped(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        given: dict[SigningRequest, SignedTransaction] = {}
        for _ in range(_MOST_RUNS):
            token = _given.set(given)
            try:
                with transaction.atomic(durable=True):
                    return run(*args, **kwargs)
            except _SignatureMissing as missing:
                request = missing.request
            finally:
                _given.reset(token)
            given[request] = remote_signer().sign_request(request)
        raise SignerUnavailable("The rows changed each time.", retry_after=RETRY_AFTER_SECONDS)

    return wrapped


class RemoteSigner:
    """
    Asks a signer over its socket. What it holds is asked for again every half minute, so that keys may change.

    While it is silent, callers are told so at once: only the first of them has waited for the whole time-out. `health`
    asks the same signer, and waits for a moment.
    """

    is_remote = True

    def __init__(self, client: SignerClient, health: SignerClient) -> None:
        self._client, self._health = client, health
        self._is_silent = False
        self._silent_until = 0.0
        self._health_lock = threading.Lock()
        self._cached_keys: KeyList | None = None
        self._refresh_at = 0.0
        self._refresh_lock = threading.Lock()

    def addresses(self) -> list[str]:
        return list(self._keys().relayers)

    def spare_addresses(self) -> list[str]:
        return list(self._keys().spare)

    def treasury_address(self) -> str:
        """Return the address of the treasury whose key the signer has; empty where it has none."""
        return self._keys().treasury

    def require_answers(self) -> None:
        if not self._is_silent:
            return
        if time.monotonic() < self._silent_until or not self._health_lock.acquire(blocking=False):
            raise _away()
        try:
            self._health.read("/health")
            self._is_silent = False
        except SignerAway as error:
            raise self._fell_silent() from error
        finally:
            self._health_lock.release()

    def sign(self, *, relayer: str, transaction: UnsignedTransaction) -> SignedTransaction:
        return self.sign_request(SigningRequest(relayer, transaction))

    def sign_request(self, request: SigningRequest) -> SignedTransaction:
        """
        Sign for a relayer or the treasury; inside a transaction of `signed_outside`, end it where that was not done.

        Raises:
            PolicyViolation, SignerUnavailable: see `Signer.sign`.
        """
        given = _given.get()
        if given is not None:
            if request not in given:
                raise _SignatureMissing(request)
            return given[request]
        (outcome,) = self.sign_together([request])
        if isinstance(outcome, PolicyViolation) and outcome.refusal == "used-up":
            raise used_up() from outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def sign_together(self, requests: Sequence[SigningRequest]) -> list[SignedTransaction | Exception]:
        self.require_answers()
        try:
            return [_away() if outcome is None else outcome for outcome in self._client.sign(requests)]
        except SignerAway as error:
            raise self._fell_silent() from error

    def _fell_silent(self) -> SignerUnavailable:
        self._silent_until = time.monotonic() + _PAUSE_SECONDS
        self._is_silent = True
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
    return SignerUnavailable("The signer does not answer. Repeat the call.", retry_after=RETRY_AFTER_SECONDS)


def used_up() -> SignerUnavailable:
    """Return the error for a call that the signer will sign later, once the hour of its relayer is over."""
    detail = "The relayers may spend no more gas for now. Repeat the call later."
    return SignerUnavailable(detail, retry_after=60)


@cache
def remote_signer() -> RemoteSigner:
    """Return the signer at `SIGNER_URL`, made once."""
    folder = settings.SIGNER_TLS_FOLDER
    certificates = Certificates.in_folder(folder) if folder else None
    seconds: float = settings.SIGNER_TIMEOUT_SECONDS
    return RemoteSigner(
        *(
            SignerClient(settings.SIGNER_URL, timeout_seconds=timeout, certificates=certificates)
            for timeout in (seconds, min(seconds, _HEALTH_SECONDS))
        )
    )
