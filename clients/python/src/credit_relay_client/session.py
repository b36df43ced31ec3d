"""One profile that is signed in: its tokens, and requests in its name."""

import json
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from credit_relay_client.schema import NonceResponse, TokenPairResponse
from credit_relay_client.service import RelayProblem, Service

_RENEW_SECONDS_BEFORE_END = 30
# An answer that was lost can be asked for again for 10 seconds; later the same token ends the session.
_REFRESH_PATIENCE_SECONDS = 8
_RENEWABLE = {"access-token-expired", "not-authenticated", "session-ended", "controller-revoked"}


class Tokens(NamedTuple):
    """What a session is carried on with; `expires_at` is the end of the access token, in unix seconds."""

    access: str
    refresh: str
    expires_at: float


@dataclass
class Session:
    """
    A profile at a service; it signs in with the first request.

    `domain` is what the service calls itself in sign-in messages, `sign` signs them, and `storage` keeps the tokens.
    """

    profile: str
    service: Service
    domain: str
    sign: Callable[[str], str]
    storage: MutableMapping[str, str]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def exists(self) -> bool:
        """Whether there are tokens; whether they are still good is known after a request."""
        return self.tokens is not None

    def open(self) -> None:
        """Sign in unless that was done before."""
        self._fresh_tokens()

    def close(self) -> None:
        """End the session at the service and forget the tokens."""
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
        """Make a request in the name of the profile; an expired token is renewed, and the request repeated."""

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
        """Return tokens other than those that were refused; one thread renews them for all."""
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
        # Another thread may have signed out meanwhile.
        self.storage.pop(self._key, None)
        return self._sign_in()

    def _sign_in(self) -> Tokens:
        def attempt() -> TokenPairResponse:
            # Each attempt begins with a nonce of its own, because one is good for one attempt, whatever its answer was.
            challenge: NonceResponse = self.service.once("POST", "/api/auth/nonce", {"address": self.profile})
            # A service that passes on the message of another one would sign in there in the name of the profile.
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
        """The newest tokens; None before the first sign-in."""
        kept = self.storage.get(self._key)
        return None if kept is None else Tokens(*json.loads(kept))

    @property
    def _key(self) -> str:
        return f"{self.service.url} {self.profile.lower()}"
