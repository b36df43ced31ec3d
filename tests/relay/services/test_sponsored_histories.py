"""
Random histories of sponsored calls with reorganisations on a real node, beside a model in plain Python.

A history makes the moves of `tests.relay.services.test_reorganised_histories`; its calls name sponsors, whose policies
change, whose accounts are frozen, funded, emptied, and clawed back into debt; staff also adjust users' balances.
Policies also want vouchers, tokens, follows, or the response of a server. After every call the model must have chosen
the same payer.
In the end ledger, holds and counters must be those of the model and of the final chain. `SPONSOR_HISTORIES` sets the
number of histories, and `SPONSOR_SEED` the first.
"""

import os
import re
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from credits.models import EntrySource
from credits.queries import balance_of
from credits.services import entries
from credits.services import reconciliation as ledger
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.models import Relayer, RelayTransaction
from relay.services.accepting import preparation, submission
from relay.services.accepting.calls import Caller
from relay.services.accepting.preparation import Draft
from relay.services.settling import reconciliation
from rewards.models import Badge
from sponsors import models
from sponsors.services.paying import SponsorChoice
from tests.credits.causes import causeless
from tests.relay.chain import Chain
from tests.relay.conftest import LYX
from tests.relay.services.outside import Outside
from tests.relay.services.test_reorganised_histories import History, expected_cost
from tests.relay.signing import sign_digest
from tests.sponsors.model import Brought, Paid, Part, Policy, Sponsor, Terms
from tests.sponsors.sponsorships import make_sponsor
from tests.sponsors.verifier_server import VerifierServer, running
from users.models import User

pytestmark = pytest.mark.django_db
_FIRST = int(os.environ.get("SPONSOR_SEED", "0"))
_HISTORIES = range(_FIRST, _FIRST + int(os.environ.get("SPONSOR_HISTORIES", "2")))
_FUNDS = 10**6
# Of the users: the last one has all calls paid by sponsors, or none.
_CREDITS = (10**7, 10**7, 1)
_FINAL_DEPTH = 30
_RULES = ("all", "all", "listed", "vouched", "vouched", "verified", "holding", "followed", "follower")
_NEEDED = re.compile(r"(\d+) are needed")
_Owners = list[tuple[Profile, User]]


class SponsoredHistory(History):
    """A history with two sponsors, each with a model beside its rows."""

    def __init__(self, *, server: VerifierServer, **values: Any) -> None:
        super().__init__(**values)
        self.books: dict[str, Sponsor] = {}
        holder = self.owners[0][0].profile_address
        self.outside = Outside(rng=self.rng, services=self.services, server=server, holder=holder)
        self.brought = Brought()
        self.adjusted: Counter[int] = Counter()
        self.now_and_then = {
            self.freeze: 1,
            self.thaw: 3,
            self.switch: 1,
            self.change_terms: 5,
            self.move_funds: 2,
            self.claw_back: 1,
            self.adjust_user: 2,
            self.call_with_quote: 4,
            self.change_key: 4,
            self.change_relation: 4,
        }
        for _ in range(2):
            sponsor = make_sponsor(_FUNDS)
            slug = sponsor.slug
            self.books[slug] = Sponsor(_FUNDS, [])
            self.outside.open(sponsor)
            for position in range(2):
                name = f"{slug}-{position}"
                models.Policy.objects.create(sponsor=sponsor, name=name, position=position)
                policy = Policy(name, [])
                self.books[slug].policies.append(policy)
                self._add_terms(policy)

    def mine(self) -> None:
        """Mine; and do now and then what sponsors do, after the books have been compared."""
        super().mine()
        self.compare()
        for _ in range(3):
            self.call()
        (move,) = self.rng.choices(list(self.now_and_then), list(self.now_and_then.values()))
        self.made[move.__name__] += 1
        move()

    def use_key_elsewhere(self) -> None:
        """Do so once: the service does not believe a single node that reports it of most relayers."""
        if self.made["use_key_elsewhere"] == 1:
            super().use_key_elsewhere()

    def freeze(self) -> None:
        self._set_frozen(is_frozen=True)

    def thaw(self) -> None:
        self._set_frozen(is_frozen=False)

    def _set_frozen(self, *, is_frozen: bool) -> None:
        slug = self.rng.choice(list(self.books))
        self.books[slug].is_frozen = is_frozen
        models.Sponsor.objects.filter(slug=slug).update(is_frozen=is_frozen)

    def switch(self) -> None:
        policy = self.rng.choice(self.books[self.rng.choice(list(self.books))].policies)
        policy.is_enabled = self.rng.random() < 0.7
        models.Policy.objects.filter(name=policy.name).update(is_enabled=policy.is_enabled)

    def change_terms(self) -> None:
        self._add_terms(self.rng.choice(self.books[self.rng.choice(list(self.books))].policies))

    def move_funds(self) -> None:
        slug = self.rng.choice(list(self.books))
        self._fund(slug, self.rng.choice((_FUNDS // 2, -(self.books[slug].balance // 2) or 1)))

    def claw_back(self) -> None:
        """Take what was refunded at the payment provider, even if the sponsor has spent it or holds have it."""
        slug = self.rng.choice(list(self.books))
        self._fund(
            slug, -max(1, self.books[slug].balance + self.rng.choice((-self.books[slug].held, 0, 500)))
        )

    def adjust_user(self) -> None:
        """Give a user credits, or take some; the user with a single one keeps it."""
        _, user = self.rng.choice(self.owners[:-1])
        moved = self.rng.randint(1, 5_000) * self.rng.choice((1, -1))
        entries.adjust(user=user, credits=moved, key=secrets.token_hex(8), actor=None, reason="a history")
        self.adjusted[user.pk] += moved

    def change_key(self) -> None:
        self.outside.change_key(self.rng.choice(list(self.books)))

    def change_relation(self) -> None:
        self.outside.change_relation(self.rng.choice(self.owners)[0].profile_address)

    def _fund(self, slug: str, credits: int) -> None:
        sponsor = models.Sponsor.objects.get(slug=slug)
        entries.adjust_sponsor(
            sponsor_id=sponsor.pk, credits=credits, key=secrets.token_hex(8), actor=None, reason="a history"
        )
        self.books[slug].funds += credits

    def _add_terms(self, policy: Policy) -> None:
        """Give the policy a version with random limits near what a few calls cost."""
        maybe = self._maybe
        window, rule = maybe(20), self.rng.choice(_RULES)
        listed = (self.rng.choice(self.owners)[1].pk,) if rule == "listed" else ()
        terms = Terms(
            number=len(policy.versions) + 1,
            share=self.rng.choice((100, 100, 1, 50, 99)),
            call=self.rng.choice((10**9, 10**9, 200)),
            user_day=maybe(9),
            user=maybe(12),
            user_calls=self.rng.choice((None, None, None, 1, 5)),
            window=window,
            window_seconds=60 if window else None,
            campaign=maybe(30),
            targets=frozenset(self.rng.choice(((), (), ("flaky",), ("profile",)))),
            rule=rule,
            profiles=frozenset(listed),
        )
        policy.versions.append(terms)
        contracts = {"flaky": self.flaky.address, "profile": "profile"}
        models.PolicyVersion.objects.create(
            policy=models.Policy.objects.get(name=policy.name),
            number=terms.number,
            targets=[{"contract": contracts[each], "functions": []} for each in terms.targets],
            profiles=terms.rule,
            **self.outside.terms_of(terms.rule),
            listed=[user.profile_address for _, user in self.owners if user.pk in terms.profiles],
            share_percent=terms.share,
            call_credits=terms.call,
            user_day_credits=terms.user_day,
            user_credits=terms.user,
            user_calls=terms.user_calls,
            window_seconds=terms.window_seconds,
            window_credits=terms.window,
            campaign_credits=terms.campaign,
        )

    def _maybe(self, calls: int) -> int | None:
        """Return about as many credits as this number of calls holds, or no limit."""
        return self.rng.choice((None, None, None, self.rng.randint(1, calls * 150)))

    def _accept(self, user: User, call: RelayCall) -> None:
        slug = self.rng.choice([*self.books, *self.books, None])
        choice = self._choice(user, slug, user_may_pay=self.rng.random() < 0.3) if slug else None
        self._compare_choice(user, call, choice, None)

    def _choice(self, user: User, slug: str, *, user_may_pay: bool = False) -> SponsorChoice:
        policies = [policy.name for policy in self.books[slug].policies]
        voucher = self.outside.voucher(slug, policies, profile=str(user.profile_address))
        return SponsorChoice(slug, user_may_pay=user_may_pay, voucher=voucher)

    def call_with_quote(self) -> None:
        """Prepare a call that a sponsor is to pay; send it, sometimes after the sponsor has changed something."""
        profile, user = self.rng.choice(self.owners)
        choice = self._choice(user, self.rng.choice(list(self.books)))
        caller = Caller(user.pk, str(user.profile_address))
        payload = bytes.fromhex("7f23690c") + secrets.token_bytes(32) + (64).to_bytes(32, "big") + bytes(32)
        draft = Draft(payload, secrets.randbits(100), controller=profile.controller.address, sponsor=choice)
        try:
            prepared = preparation.prepare(caller=caller, draft=draft, now=timezone.now())
        except DomainError as refusal:
            self.made[refusal.code] += 1
            return
        if prepared.quote is None or prepared.sponsorship is None:
            self.made["no sponsored quote"] += 1
            return
        if self.rng.random() < 0.4:
            self.change_terms()
        digest = bytes.fromhex(prepared.identity.digest[2:])
        signed = replace(prepared.call, signature=sign_digest(profile.controller.private_key, digest))
        self._compare_choice(user, signed, choice, prepared)

    def _compare_choice(
        self, user: User, call: RelayCall, choice: SponsorChoice | None, prepared: Any
    ) -> None:
        """Hand in the call, and compare who pays, or why nobody does, with the model."""
        self.read_outcomes()
        known = set(RelayTransaction.objects.values_list("pk", flat=True))
        now = timezone.now()
        quote_id = prepared and prepared.quote.pk
        caller = Caller(user.pk, str(user.profile_address))
        if choice is not None:
            book, profile = self.books[choice.slug], caller.profile_address
            self.brought = self.outside.brought(choice.slug, book, choice.voucher, profile=profile)
        try:
            submission.execute(caller=caller, call=call, now=now, quote_id=quote_id, sponsor=choice)
        except DomainError as refusal:
            self.made[refusal.code] += 1
            self._compare_refusal(user, call, choice, refusal, prepared)
            return
        self.calls.append((user, call))
        for row in RelayTransaction.objects.exclude(pk__in=known).select_related("hold"):
            self._compare_payer(row, choice, prepared, now)

    def _compare_payer(
        self, row: RelayTransaction, choice: SponsorChoice | None, prepared: Any, now: Any
    ) -> None:
        paid = models.SponsoredCall.objects.select_related("sponsor_hold", "version__policy__sponsor").filter(
            hold=row.hold
        )
        target = self._target(bytes(row.payload))
        sponsored = paid.first()
        if sponsored is None:
            assert choice is None or choice.user_may_pay
            if choice is not None:
                self._expect_none_pays(choice.slug, row.user_id, target, row.hold.amount, now)
            return
        assert choice is not None
        total = row.hold.amount + sponsored.sponsor_hold.amount
        policy_name, number = sponsored.version.policy.name, sponsored.version.number
        policy, terms, part = self._first_fit(choice.slug, row.user_id, target, total, now, prepared)
        assert (policy_name, number, sponsored.sponsor_hold.amount) == (policy.name, terms.number, part)
        book = self.books[choice.slug]
        assert not book.is_frozen
        assert book.balance - book.held >= part
        book.calls[row.hold_id] = Paid(policy.name, terms, row.user_id, now, part)
        if terms.rule == "vouched":
            book.used_vouchers.add(self.brought.voucher_id)
        self.made[f"sponsored: {terms.rule}"] += 1

    def _first_fit(
        self, slug: str, user: int, target: str, credits: int, now: Any, prepared: Any
    ) -> tuple[Policy, Terms, int]:
        book = self.books[slug]
        for policy in book.policies:
            for terms in self._asked(policy, prepared):
                part = (credits * terms.share + 99) // 100
                if (
                    book.refusal(
                        policy, terms, user=user, target=target, part=part, at=now, brought=self.brought
                    )
                    is None
                ):
                    return policy, terms, part
        raise AssertionError("the model lets no policy pay")

    def _asked(self, policy: Policy, prepared: Any) -> list[Terms]:
        """Return the newest version, or the quoted one alone."""
        if not policy.is_enabled:
            return []
        if prepared is None:
            return policy.versions[-1:]
        quoted = models.PolicyVersion.objects.get(pk=prepared.sponsorship.version_id)
        return [
            terms
            for terms in policy.versions
            if (policy.name, terms.number) == (quoted.policy.name, quoted.number)
        ]

    def _expect_none_pays(self, slug: str, user: int, target: str, credits: int, now: Any) -> None:
        book = self.books[slug]
        if book.is_frozen:
            return
        for policy in book.policies:
            for terms in self._asked(policy, None):
                part = (credits * terms.share + 99) // 100
                refused = book.refusal(
                    policy, terms, user=user, target=target, part=part, at=now, brought=self.brought
                )
                assert refused is not None or book.balance - book.held < part

    def _compare_refusal(
        self, user: User, call: RelayCall, choice: SponsorChoice | None, refusal: DomainError, prepared: Any
    ) -> None:
        if choice is None or not refusal.code.startswith("sponsor-"):
            return
        book, now = self.books[choice.slug], timezone.now()
        if refusal.code == "sponsor-frozen":
            assert book.is_frozen
            return
        assert not book.is_frozen
        if refusal.code == "sponsor-without-credits":
            assert book.balance - book.held < _FUNDS
            return
        target = self._target(call.payload)
        asked = {
            policy.name: (policy, terms)
            for policy in book.policies
            for terms in self._asked(policy, prepared)
        }
        rules = refusal.members["policies"]
        assert [each["policy"] for each in rules] == list(asked)
        for rule in rules:
            policy, terms = asked[rule["policy"]]
            needed = _NEEDED.search(rule["detail"])
            part = int(needed[1]) if needed else 0
            expected = book.refusal(
                policy, terms, user=user.pk, target=target, part=part, at=now, brought=self.brought
            )
            assert rule["code"] == expected, (rule, terms)

    def _target(self, payload: bytes) -> str:
        return "profile" if payload.startswith(bytes.fromhex("7f23690c")) else "flaky"

    def read_outcomes(self) -> None:
        """Tell the model which calls have ended, and what they cost."""
        rows = RelayTransaction.objects.filter(
            hold__in=[key for book in self.books.values() for key in book.calls]
        )
        ended = {row.hold_id: row for row in rows if row.status not in RelayTransaction.IN_PROGRESS}
        for book in self.books.values():
            for hold_id, call in book.calls.items():
                call.cost = ended[hold_id].real_cost if hold_id in ended else None

    def compare(self) -> None:
        """Compare each sponsor's account and counters with the model."""
        self.read_outcomes()
        for slug, book in self.books.items():
            used = models.UsedVoucher.objects.filter(sponsor__slug=slug).values_list("voucher_id", flat=True)
            assert set(used) == {"0x" + voucher_id.hex() for voucher_id in book.used_vouchers}
            account = models.Sponsor.objects.get(slug=slug).credit_account
            assert (account.balance, account.held) == (book.balance, book.held)
            assert account.open_holds == sum(call.cost is None for call in book.calls.values())
            amounts, calls = book.counts()
            usage = {
                Part(row.policy.name, row.scope, row.user_number, row.begins): (row.credits, row.calls)
                for row in models.Usage.objects.filter(policy__sponsor__slug=slug).select_related("policy")
            }
            # A refused call may leave an empty count behind.
            assert {part: count for part, count in usage.items() if count != (0, 0)} == {
                part: (amounts[part], calls[part]) for part in calls if (amounts[part], calls[part]) != (0, 0)
            }


@pytest.fixture
def owners(create_profile: Callable[..., Profile], open_account: Callable[..., User]) -> _Owners:
    """Three profiles of their own for each history, the last with a single credit; a tenth of a success returns."""
    profiles = [create_profile() for _ in _CREDITS]
    pairs = [
        (profile, open_account(profile, granted)) for profile, granted in zip(profiles, _CREDITS, strict=True)
    ]
    Badge.objects.update(credits_back_percent=Decimal("0.1"), exp_growth_rate=1)
    return pairs


@pytest.mark.parametrize("seed", _HISTORIES)
def test_after_any_history_the_books_of_sponsors_are_those_of_the_model_and_the_chain(
    seed: int, services: Services, chain: Chain, relayers: list[Relayer], owners: _Owners, settings: Any
) -> None:
    settings.WEBHOOK_ALLOW_HTTP = settings.WEBHOOK_ALLOW_LOOPBACK = True
    settings.WEBHOOK_SECRET_KEYS = [secrets.token_urlsafe(32)]
    settings.FINALITY_BLOCKS = _FINAL_DEPTH
    settings.RELAY_LOSS_PER_HOUR_WEI = settings.RELAY_USER_LOSS_PER_HOUR_WEI = LYX
    settings.RELAY_CANCELLED_CALLS_PER_HOUR = settings.RELAY_CANCELLED_CALLS_PER_DAY = 1000
    with running() as server:
        history = SponsoredHistory(seed=seed, services=services, chain=chain, owners=owners, server=server)
        history.play()
        history.play()
        history.settle_everything()

    history.compare()
    executed: Counter[tuple[str, str, int]] = Counter()
    paid_calls = {hold_id: call for book in history.books.values() for hold_id, call in book.calls.items()}
    for (_, user), granted in zip(owners, _CREDITS, strict=True):
        spent, gained = 0, 0
        for call in RelayTransaction.objects.filter(user=user).select_related("hold"):
            sponsored = paid_calls.get(call.hold_id)
            cost = _cost_on_chain(chain, call, sponsored)
            part = (cost * sponsored.terms.share + 99) // 100 if sponsored else 0
            assert (call.hold.captured_amount or 0) == cost - part
            if sponsored:
                assert sponsored.credits == part
            spent += cost - part
            if call.status == RelayTransaction.Status.SUCCESS:
                gained += cost - part
                executed[call.key_manager_address, call.controller_address, call.relay_nonce] += 1
        balance = granted + history.adjusted[user.pk] - spent + gained // 10
        assert balance_of(user) == (balance, 0, balance)
    assert all(times == 1 for times in executed.values())
    assert ledger.find_differences() == []
    assert (
        causeless(EntrySource.RELAY_TRANSACTION, EntrySource.RELAY_REVERSAL, EntrySource.CREDITS_BACK) == []
    )
    since = timezone.now() - timedelta(days=1)
    assert reconciliation.find_differences(since=since) == []
    print(f"seed {seed}: {len(paid_calls)} sponsored, {dict(history.made)}")  # noqa: T201


def _cost_on_chain(chain: Chain, call: RelayTransaction, sponsored: Paid | None) -> int:
    """Return what the call must have cost by the final chain, at most what both sides hold."""
    call.hold.amount += sponsored.held if sponsored else 0
    return expected_cost(chain, call)
