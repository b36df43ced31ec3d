"""The session of one profile: its tokens, and authenticated requests."""

import json
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from credit_relay_client.schema import NonceResponse, TokenPairResponse
from credit_relay_client.service import RelayProblem, Service

_RENEW_SECONDS_BEFORE_END = 30
# For 10 seconds a refresh may be retried with the same token; later its reuse ends the session.
_REFRESH_PATIENCE_SECONDS = 8
_RENEWABLE = {"access-token-expired", "not-authenticated", "session-ended", "controller-revoked"}


class Tokens(NamedTuple):
    """The tokens of a session; `expires_at` is the expiry of the access token in unix seconds."""

    access: str
    refresh: str
    expires_at: float


@dataclass
class Session:
    """
    A profile's session at a service; its first request signs in.

    `domain` is the service's domain in sign-in messages, `sign` signs them, and `storage` stores the tokens.
    """

    profile: str
    service: Service
    domain: str
    sign: Callable[[str], str]
    storage: MutableMapping[str, str]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.service.is_known |= self.exists

    @property
    def exists(self) -> bool:
        """Whether there are tokens, which may have expired."""
        return self.tokens is not None

    def open(self) -> None:
        """Sign in unless there are tokens."""
        self._fresh_tokens()

    def close(self) -> None:
        """End the session at the service and delete the tokens."""
        if self.exists:
            try:
                self.request("POST", "/api/auth/logout", {})
            finally:
                self.storage.pop(self._key, None)

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        patience_seconds: float | None = None,
    ) -> Any:
        """Make a request as the profile; renew an expired token and retry."""

        def attempt(tokens: Tokens) -> Any:
            authorized = {**(headers or {}), "Authorization": f"Bearer {tokens.access}"}
            return self.service.patiently(
                lambda: self.service.once(method, path, body, headers=authorized), seconds=patience_seconds
            )

        tokens = self._fresh_tokens()
        try:
            return attempt(tokens)
        except RelayProblem as problem:
            if problem.code not in _RENEWABLE:
                raise
        return attempt(self._fresh_tokens(refused=tokens))

    def _fresh_tokens(self, *, refused: Tokens | None = None) -> Tokens:
        """Return tokens other than the rejected ones; one thread renews them for all."""
        with self._lock:
            tokens = self.tokens
            if tokens is None:
                return self._sign_in()
            is_fresh = tokens.expires_at - time.time() > _RENEW_SECONDS_BEFORE_END
            return tokens if is_fresh and tokens != refused else self._refresh(tokens)

    def _refresh(self, tokens: Tokens) -> Tokens:
        def attempt() -> TokenPairResponse:
            pair: TokenPairResponse = self.service.once(
                "POST", "/api/auth/refresh", {"refresh": tokens.refresh}
            )
            return pair

        try:
            return self._keep(self.service.patiently(attempt, seconds=_REFRESH_PATIENCE_SECONDS))
        except RelayProblem as problem:
            if problem.status != 401:
                raise
        # Another thread may have signed out in the meantime.
        self.storage.pop(self._key, None)
        return self._sign_in()

    def _sign_in(self) -> Tokens:
        def attempt() -> TokenPairResponse:
            # Each attempt requests a new nonce, because a nonce is valid for one attempt.
            challenge: NonceResponse = self.service.once("POST", "/api/auth/nonce", {"address": self.profile})
            # A malicious service could forward another service's message, to sign in there as the profile.
            head = f"{self.domain} wants you to sign in with your Ethereum account:\n"
            if not challenge["message"].startswith(head):
                raise ValueError(f"The sign-in message of {self.service.url} is not for {self.domain}.")
            proof = {"nonce": challenge["nonce"], "signature": self.sign(challenge["message"])}
            pair: TokenPairResponse = self.service.once("POST", "/api/auth/verify", proof)
            return pair

        return self._keep(self.service.patiently(attempt))

    def _keep(self, pair: TokenPairResponse) -> Tokens:
        tokens = Tokens(pair["access"], pair["refresh"], time.time() + pair["expiresIn"])
        self.storage[self._key] = json.dumps(tokens)
        return tokens

    @property
    def tokens(self) -> Tokens | None:
        """The current tokens; None before the first sign-in."""
        kept = self.storage.get(self._key)
        return None if kept is None else Tokens(*json.loads(kept))

    @property
    def _key(self) -> str:
        return f"{self.service.url} {self.profile.lower()}"
