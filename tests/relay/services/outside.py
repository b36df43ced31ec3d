"""What sponsored calls of a random history bring, and what chain and servers tell of them."""

import random
import secrets
from dataclasses import dataclass
from typing import Any

from django.utils import timezone
from eth_account import Account

from devstack.services.stack import Services
from devstack.world.abi import calldata
from gateway.chain.contracts import FOLLOWER_SYSTEM
from sponsors import models
from sponsors.rules.vouchers import SignedVoucher, Voucher, typed_data
from sponsors.services import holdings, signers, verifiers
from tests.factories import random_address
from tests.relay import tokens
from tests.sponsors.model import Brought, Sponsor
from tests.sponsors.verifier_server import VerifierServer, says

_DEADLINE_SECONDS = 3600
_LEAST = 100
_RULES = ("holding", "followed", "follower")


@dataclass(frozen=True)
class _Issued:
    """A voucher, with the address of the key that signed it."""

    signed: SignedVoucher
    signer: str


class Outside:
    """Keys of vouchers, a server, a token and a profile to follow, which the sponsors of a history share."""

    def __init__(
        self, *, rng: random.Random, services: Services, server: VerifierServer, holder: str
    ) -> None:
        self._rng, self._services, self._server = rng, services, server
        self._token = tokens.deploy_fungible(services, holder=holder, amount=_LEAST)
        self._other = random_address()
        self._keys: dict[str, Any] = {}
        self._issued: list[_Issued] = []

    def open(self, sponsor: models.Sponsor) -> None:
        """Give the sponsor a key and a verifier."""
        verifiers.save(models.Verifier(sponsor=sponsor, url=self._server.url), {})
        self._add_key(sponsor)

    def change_key(self, slug: str) -> None:
        """Remove the key that signs the sponsor's vouchers, and add another one."""
        signers.remove(models.VoucherSigner.objects.get(sponsor__slug=slug, removed_at=None))
        self._add_key(models.Sponsor.objects.get(slug=slug))

    def _add_key(self, sponsor: models.Sponsor) -> None:
        key = self._keys[sponsor.slug] = Account.create()
        signers.save(models.VoucherSigner(sponsor=sponsor, address=key.address), {})

    def terms_of(self, rule: str) -> dict[str, Any]:
        """Return what a version with this rule has beside the rule's name."""
        if rule == "holding":
            return {"counterpart": self._token, "least_balance": _LEAST}
        return {"counterpart": self._other} if rule in _RULES else {}

    def voucher(self, slug: str, policies: list[str], *, profile: str) -> SignedVoucher | None:
        """Return none, a new voucher, or one that was issued before, perhaps of another sponsor or profile."""
        kind = self._rng.random()
        if kind < 0.3:
            return None
        if kind < 0.5 and self._issued:
            own = [each for each in self._issued if each.signed.voucher.profile == profile]
            return self._rng.choice(own if own and kind < 0.45 else self._issued).signed
        voucher = Voucher(
            sponsor=slug,
            policy=self._rng.choice(policies),
            profile=profile,
            voucher_id=secrets.token_bytes(32),
            deadline=int(timezone.now().timestamp()) + _DEADLINE_SECONDS,
            maximum_credits=self._rng.choice((10**6, 10**6, 150)),
        )
        message = typed_data(voucher, chain_id=self._services.chain_id)
        signed = SignedVoucher(voucher, bytes(self._keys[slug].sign_message(message).signature))
        self._issued.append(_Issued(signed, self._keys[slug].address))
        return signed

    def brought(self, slug: str, book: Sponsor, voucher: SignedVoucher | None, *, profile: str) -> Brought:
        """Return what a call brings now; the server responds to the next question accordingly."""
        for recent in (holdings._recent, verifiers._recent):
            recent.clear()
        # A breaker that others have opened is not what a history is about.
        verifiers._guard_of.cache_clear()
        most = self._rng.choice((10**6, 10**6, 150, 0, None))
        results = says({"pay": True, "maximumCredits": most} if most else {"pay": False})
        self._server.answer = says({}, 500) if most is None else results
        told = Brought(relations=frozenset(self._relations(profile)), verifier=most)
        return told if voucher is None else self._with_voucher(told, slug, book, voucher, profile)

    def _with_voucher(
        self, told: Brought, slug: str, book: Sponsor, signed: SignedVoucher, profile: str
    ) -> Brought:
        voucher = signed.voucher
        (signer,) = (each.signer for each in self._issued if each.signed is signed)
        is_theirs = (voucher.sponsor, voucher.profile, signer) == (slug, profile, self._keys[slug].address)
        fault = "sponsor-voucher-used" if voucher.voucher_id in book.used_vouchers else ""
        return Brought(
            voucher_id=voucher.voucher_id,
            voucher_of=voucher.policy,
            voucher_credits=voucher.maximum_credits,
            voucher_fault=fault if is_theirs else "sponsor-voucher",
            relations=told.relations,
            verifier=told.verifier,
        )

    def _relations(self, profile: str) -> list[str]:
        """Return the rules that hold for the profile at the newest block."""
        balance = self._read(self._token, calldata("balanceOf(address)", profile))
        truths = (balance >= _LEAST, self._follows(self._other, profile), self._follows(profile, self._other))
        return [rule for rule, is_true in zip(_RULES, truths, strict=True) if is_true]

    def _follows(self, follower: str, followed: str) -> bool:
        return self._read(FOLLOWER_SYSTEM, calldata("isFollowing(address,address)", follower, followed)) == 1

    def _read(self, contract: str, data: bytes) -> int:
        result = self._services.rpc.call("eth_call", {"to": contract, "data": "0x" + data.hex()}, "latest")
        return int(result, 16) if result != "0x" else 0

    def change_relation(self, profile: str) -> None:
        """Give the profile tokens, or begin or end a follow."""
        if self._rng.random() < 0.4:
            tokens.mint(self._services, self._token, holder=profile, amount=self._rng.randint(1, _LEAST))
            return
        follower, followed = self._rng.sample([profile, self._other], 2)
        change = tokens.unfollow if self._follows(follower, followed) else tokens.follow
        change(self._services, follower=follower, followed=followed)
