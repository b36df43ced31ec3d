"""The client of a wallet: sign in, relay calls, follow them, and read the account."""

import math
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from eth_account.signers.local import LocalAccount

from credit_relay_client.calls import (
    Call,
    RelayCall,
    encode_calls,
    encode_removal,
    personal_sign,
    quota_message,
    sign_hash,
)
from credit_relay_client.schema import (
    CheckInResult,
    Controller,
    Copy,
    Dashboard,
    DatedEarning,
    DatedTransaction,
    FirstDeploymentRequest,
    NewPurchaseRequest,
    Packs,
    Prepared,
    Purchase,
    Quota,
    TopUp,
    TopUpTermsRequest,
    TransactionStatus,
)
from credit_relay_client.service import Node, RelayProblem, Service
from credit_relay_client.session import Session

# One call, several under one signature, or an encoded call of the profile itself.
Work = Call | Sequence[Call] | bytes

_OPEN_STATUSES = {"Pending", "Submitted"}
# The service rejected the call because the prepared nonce or quote is outdated.
_OUTDATED = {
    *("relay-nonce-gap", "relay-nonce-taken", "relay-nonce-used"),
    *("quote-expired", "quote-used", "quote-outdated", "quote-not-found", "quote-for-other-call"),
}
_WAIT_SECONDS, _PAUSE_SECONDS = 20, 0.5
_HOUR_SECONDS = 3600


def connect(
    url: str,
    signer: LocalAccount,
    *,
    node: Node | str | None = None,
    domain: str | None = None,
    tokens: MutableMapping[str, str] | None = None,
    patience_seconds: float = 60,
) -> "Relay":
    """
    Connect a controller's key to a service. The first request that needs a session signs in.

    Args:
        node: A node of the chain, to verify the key manager and chain in the service's responses.
        domain: The service's domain in sign-in messages; by default the host of the URL.
        tokens: The storage of tokens; by default memory.
        patience_seconds: How long to retry requests while the service is busy or unreachable.
    """
    checked_by = Node(node) if isinstance(node, str) else node
    service = Service(url, patience_seconds)
    return Relay(
        service, signer, checked_by, domain or urlsplit(url).netloc, {} if tokens is None else tokens
    )


class Relay:
    """A service, for the profiles of one controller."""

    def __init__(
        self,
        service: Service,
        signer: LocalAccount,
        node: Node | None,
        domain: str,
        tokens: MutableMapping[str, str],
    ) -> None:
        self.service = service
        self.signer = signer
        self._node = node
        self._domain = domain
        self._tokens = tokens
        self._sessions: dict[str, Session] = {}
        self._channels: dict[tuple[str, int | None, int], threading.Lock] = defaultdict(threading.Lock)

    def session(self, profile: str) -> Session:
        """Return the profile's session, for any request of the API."""
        if profile.lower() not in self._sessions:
            sign = lambda message: personal_sign(self.signer, message.encode())  # noqa: E731
            session = Session(profile, self.service, self._domain, sign, self._tokens)
            self._sessions.setdefault(profile.lower(), session)
        return self._sessions[profile.lower()]

    def sign_in(self, profile: str) -> None:
        """Sign a profile in now, instead of with its first request."""
        self.session(profile).open()

    def sign_out(self, profile: str) -> None:
        """End the profile's session."""
        self.session(profile).close()

    def prepare(
        self,
        profile: str,
        work: Work,
        *,
        channel: int = 0,
        valid_seconds: int = _HOUR_SECONDS,
        chain_id: int | None = None,
        quote: bool = True,
        sponsor: str | None = None,
        sponsor_fallback: Literal["user"] | None = None,
        sponsor_voucher: str | None = None,
    ) -> "PreparedCall":
        """
        Return the cost of a call, and why the service would reject it, before the controller signs it.

        Calls of one channel run in order; channels are independent. A signed call is valid for `valid_seconds`.
        `chain_id` is one of the service's chains, by default its home chain.

        With a `quote` the call costs at most that if it is sent within a minute. To show a price while the user is
        typing, do not request one, because each quote reserves a part of the service's loss limit for the profile.

        The `sponsor` of this name pays; where it does not, the user pays only with the `sponsor_fallback` "user".
        A `sponsor_voucher` is what the sponsor's server has signed for this call.
        """
        payload = work if isinstance(work, bytes) else encode_calls(work)
        validity = int(time.time()) + valid_seconds
        body: dict[str, Any] = {
            "transaction": {"abi": "0x" + payload.hex()},
            "channel": str(channel),
            "validityTimestamps": str(validity),
            "controller": self.signer.address,
            "quote": quote,
        }
        if sponsor is not None:
            body |= {"sponsor": sponsor, "sponsorFallback": sponsor_fallback}
        if sponsor is not None and sponsor_voucher is not None:
            body |= {"sponsorVoucher": sponsor_voucher}
        if chain_id is not None:
            body |= {"chainId": chain_id}
        session = self.session(profile)
        prepared: Prepared = session.request("POST", "/api/relay/prepare", body)
        if chain_id not in {None, prepared["chainId"]}:
            raise ValueError("The service prepared the call for another chain.")
        if self._node:
            _check(prepared, key_manager=self._node.key_manager(profile), chain_id=self._node.chain_id)
        call = RelayCall(
            chain_id=prepared["chainId"],
            key_manager=prepared["keyManagerAddress"],
            nonce=int(prepared["transaction"]["nonce"]),
            payload=payload,
            validity_timestamps=validity,
        )
        return PreparedCall(call, prepared, session, self.signer, sponsor_voucher, chain_id)

    def send(
        self,
        profile: str,
        work: Work,
        *,
        channel: int = 0,
        valid_seconds: int = _HOUR_SECONDS,
        chain_id: int | None = None,
        sponsor: str | None = None,
        sponsor_fallback: Literal["user"] | None = None,
        sponsor_voucher: str | None = None,
    ) -> "SentTransaction":
        """
        Prepare, sign and submit a call. When this returns, the service has accepted it, but it is not mined yet.

        `chain_id` and `sponsor` are those of `prepare`.

        Raises:
            RelayProblem: the service rejects the call.
        """

        def attempt() -> SentTransaction:
            return self.prepare(
                profile,
                work,
                channel=channel,
                valid_seconds=valid_seconds,
                chain_id=chain_id,
                sponsor=sponsor,
                sponsor_fallback=sponsor_fallback,
                sponsor_voucher=sponsor_voucher,
            ).send()

        # One at a time, so that no two calls are prepared with the same nonce.
        with self._channels[profile.lower(), chain_id, channel]:
            try:
                return attempt()
            except RelayProblem as problem:
                if problem.code not in _OUTDATED:
                    raise
            # Another program has used the nonce, or gas costs more now: prepare once more.
            return attempt()

    def transaction(self, profile: str, transaction_hash: str) -> "SentTransaction":
        """Return a transaction that was sent before."""
        return SentTransaction(transaction_hash, self.session(profile))

    def copy_profile(
        self,
        profile: str,
        chain_id: int,
        first_deployment: FirstDeploymentRequest | None = None,
        *,
        removal: Sequence[Controller] | None = None,
    ) -> Copy:
        """
        Deploy the profile on another chain at the same addresses, for the user's credits.

        A copy begins with the controllers of the first deployment. `first_deployment` has its salt and data, which the
        service knows only of profiles that it created. Without a `transactionHash` the copy existed already; otherwise
        follow it with `transaction`.

        If the home chain has removed one of them, the problem `copy-needs-removal` has a member `removal`. Show it to
        the user, then pass it here: it is signed, and executed in the transaction of the copy.

        Raises:
            RelayProblem: the service refuses the copy; `copy-needs-removal` also if another removal is needed.
        """
        session, path = self.session(profile), "/api/relay/copyProfile"
        body: dict[str, Any] = {"chainId": chain_id}
        if first_deployment is not None:
            body["firstDeployment"] = first_deployment
        made: Copy
        try:
            made = session.request("POST", path, body)
        except RelayProblem as problem:
            if problem.code != "copy-needs-removal" or removal is None:
                raise
            call = RelayCall(chain_id, problem.members["keyManagerAddress"], 0, encode_removal(removal))
            made = session.request(
                "POST", path, body | {"removalSignature": sign_hash(self.signer, call.hash)}
            )
        return made

    def quota(self, profile: str) -> Quota:
        """Return the available credits."""

        def attempt() -> Quota:
            # Each attempt signs a new timestamp, because one is valid for 5 seconds.
            now = int(time.time())
            signature = personal_sign(self.signer, quota_message(profile, now))
            body = {"address": profile, "timestamp": now, "signature": signature}
            quota: Quota = session.request("POST", "/api/relay/quota", body, patience_seconds=0)
            return quota

        session = self.session(profile)
        # Sign in first, because that may take longer than 5 seconds.
        session.open()
        return self.service.patiently(attempt)

    def dashboard(self, profile: str) -> Dashboard:
        """Return the dashboard."""
        dashboard: Dashboard = self.session(profile).request("GET", "/api/user/dashboardInfo")
        return dashboard

    def earnings(self, profile: str) -> Iterator[DatedEarning]:
        """Yield all ledger entries except relay charges, newest first."""
        return self._pages(profile, "/api/user/earnings")

    def transactions(self, profile: str) -> Iterator[DatedTransaction]:
        """Yield the relay calls of the profile, newest first."""
        return self._pages(profile, "/api/user/transactions")

    def check_in(self, profile: str, key: str | None = None) -> CheckInResult:
        """Check in; a retry with the same key returns the same draw."""
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        path = "/api/user/executeCheckIn"
        result: CheckInResult = self.session(profile).request("POST", path, {}, headers=headers)
        return result

    def packs(self, profile: str) -> Packs:
        """Return the packs of credits, and the currencies in which any amount is sold."""
        packs: Packs = self.session(profile).request("GET", "/api/payments/packs")
        return packs

    def purchase_credits(self, profile: str, what: NewPurchaseRequest, key: str | None = None) -> Purchase:
        """
        Buy a pack, or an amount in minor units, with the card captured last.

        Pass the same key to continue a purchase after a `RelayProblem`, such as `card-declined` or
        `authentication-required`: the card is charged once.
        """
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        path = "/api/payments/purchaseCredits"
        purchase: Purchase = self.session(profile).request("POST", path, what, headers=headers)
        return purchase

    def top_up(self, profile: str) -> TopUp:
        """Return automatic top-up."""
        top_up: TopUp = self.session(profile).request("GET", "/api/payments/topUp")
        return top_up

    def set_top_up(self, profile: str, terms: TopUpTermsRequest) -> TopUp:
        """Turn automatic top-up on with the user's consent, or off."""
        top_up: TopUp = self.session(profile).request("PUT", "/api/payments/topUp", terms)
        return top_up

    def _pages(self, profile: str, path: str) -> Iterator[Any]:
        while path:
            page = self.session(profile).request("GET", path)
            yield from page["results"]
            # The token is sent only to this service.
            following = urlsplit(page["next"] or "")
            path = f"{following.path}?{following.query}" if page["next"] else ""


@dataclass(frozen=True)
class PreparedCall:
    """A call with its nonce, its cost, and the reasons for which the service would reject it now."""

    call: RelayCall
    prepared: Prepared
    session: Session
    signer: LocalAccount
    sponsor_voucher: str | None = None
    chain_id: int | None = None

    def send(self) -> "SentTransaction":
        """Sign and submit the call; one that would be rejected is not signed."""
        for refusal in self.prepared["refusals"]:
            raise RelayProblem(refusal)
        transaction = {
            "abi": "0x" + self.call.payload.hex(),
            "signature": sign_hash(self.signer, self.call.hash),
            # Numbers as text, because many programs lose digits of JSON numbers above 2^53.
            "nonce": str(self.call.nonce),
            "validityTimestamps": str(self.call.validity_timestamps),
        }
        body: dict[str, Any] = {"keyManagerAddress": self.call.key_manager, "transaction": transaction}
        if self.chain_id is not None:
            body |= {"chainId": self.chain_id}
        quote, sponsor = self.prepared["quote"], self.prepared.get("sponsor")
        headers = {"Relay-Quote": quote["id"]} if quote else {}
        # A quote decides by itself who pays; a voucher belongs to a sponsor that is named.
        if sponsor:
            headers["Relay-Sponsor"] = sponsor["name"]
        if sponsor and self.sponsor_voucher:
            headers["Relay-Sponsor-Voucher"] = self.sponsor_voucher
        answer = self.session.request("POST", "/api/relay/execute", body, headers=headers)
        return SentTransaction(answer["transactionHash"], self.session)


@dataclass(frozen=True)
class SentTransaction:
    """A relay call that the service has accepted."""

    hash: str
    session: Session

    def status(self) -> TransactionStatus:
        """Return its status record."""
        return self._status(wait=0)

    def wait(self, seconds: float = 180) -> TransactionStatus:
        """Wait for a final status: `Success`, `Failed`, `Expired` or `Cancelled`."""
        deadline = time.monotonic() + seconds
        while (began_at := time.monotonic()) < deadline:
            # Long polling: the service responds when the status changes.
            status = self._status(wait=min(_WAIT_SECONDS, math.ceil(deadline - began_at)))
            if status["status"] not in _OPEN_STATUSES:
                return status
            time.sleep(max(0, began_at + _PAUSE_SECONDS - time.monotonic()))
        raise TimeoutError(f"{self.hash} is not final after {seconds} s.")

    def _status(self, *, wait: int) -> TransactionStatus:
        status: TransactionStatus = self.session.request(
            "GET", f"/api/relay/transactions/{self.hash}?wait={wait}"
        )
        return status


def _check(prepared: Prepared, *, key_manager: str, chain_id: int) -> None:
    """Raise ValueError unless key manager and chain are the node's."""
    if (prepared["keyManagerAddress"].lower(), prepared["chainId"]) != (key_manager.lower(), chain_id):
        raise ValueError(
            "The service prepared the call for another key manager or chain than the node names."
        )
