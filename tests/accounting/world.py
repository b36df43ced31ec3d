"""People in a past year: they subscribe, buy packs, earn, make calls, want money back, and leave. Sponsors pay, too."""

import secrets
from collections.abc import Callable
from typing import Any

from django.conf import settings

from credits.models import CreditAccount, CreditHold, ExpiryRule
from credits.queries import debt_terms
from credits.services import entries, holds
from gateway.staff import approvals
from payments.errors import AuthenticationRequired, BillingUnavailable, CardDeclined, PaymentMethodRequired
from payments.models import Payout, Subscription
from payments.services import deletion, purchases, top_ups
from payments.services.payouts import rate_in_force
from payments.services.purchases import Order
from payments.services.top_ups import Terms
from relay.models import Attempt, RelayTransaction, TopUp
from sponsors.models import Sponsor
from sponsors.rules.policies import sponsor_part
from sponsors.services import funding, holding
from tests.accounting.timeline import Timeline
from tests.credits.holding import place_hold
from tests.database import tamper
from tests.factories import RelayerFactory, UserFactory, make
from tests.payments.buying import new_pack
from tests.payments.payers import Payer
from tests.payments.stripe_accounts import DECLINES, NEEDS_CONFIRMATION, VISA
from tests.sponsors.sponsorships import make_policy, make_sponsor, pay
from tests.staff import member

_GWEI = 10**9
_DEBT_LIMIT = 500
_CONSENT = "Buy this pack whenever my credits run low, up to the limit of each month."


class World(Timeline):
    """One random history of as many people."""

    def __init__(self, stripe: Any, people: int) -> None:
        super().__init__(stripe)
        self.payers = [Payer(stripe, UserFactory.create()).with_card() for _ in range(people)]
        self.currencies = {
            payer.user.pk: self.chance.choice(settings.BILLING_CURRENCIES) for payer in self.payers
        }
        for payer in self.payers:
            entries.open_account(user_id=payer.user.pk)
        self.packs = {
            currency: [new_pack(currency=currency) for _ in range(2)]
            for currency in settings.BILLING_CURRENCIES
        }
        ExpiryRule.objects.create(days=self.chance.randint(30, 90), valid_from=self.now)
        self.relayer = RelayerFactory.create()
        self.support = member("support")
        # One sponsor pays whole calls, the other a part of each.
        self.terms = [
            make_policy(make_sponsor(0), share_percent=share) for share in (100, self.chance.randint(1, 99))
        ]
        # What the charged calls have cost, by the holds of all who pay; named by the user's hold.
        self.charged: dict[int, dict[int, int]] = {}
        self.disputes: list[str] = []
        # A charge is disputed at most once, as card networks want it.
        self.disputed: set[str] = set()

    def live(self) -> None:
        """Do something, at the account's time."""
        moves = [
            self.subscribe, self.buy, self.buy, self.consent, self.change_card, self.earn, self.earn, self.call,
            self.call, self.call, self.call, self.refund, self.dispute, self.adjust, self.reverse, self.fund,
            self.fund_sponsor, self.sponsored_call, self.sponsored_call, self.sponsored_call,
        ]  # fmt: skip
        move = self.leave if self.chance.random() < 0.003 else self.chance.choice(moves)
        with self.dated():
            move(self.chance.choice(self.payers))
        self.counts[move.__name__] += 1
        self.deliver()
        self.run_tasks()

    # Money

    def subscribe(self, payer: Payer) -> None:
        amount, currency = self.chance.randint(500, 20_000), self.currencies[payer.user.pk]
        current = Subscription.objects.live().filter(user=payer.user).first()
        if current is None or (current.status == "active" and self.chance.random() < 0.5):
            self._pay(payer, lambda: payer.upsert(amount, currency))
        elif current.status == "active" and self.chance.random() < 0.5:
            payer.cancel(immediately=self.chance.random() < 0.5)

    def buy(self, payer: Payer) -> None:
        """
        Buy a pack or an amount, some for a sponsor; now and then the response is lost, so the request is repeated.
        """
        currency, key = self.currencies[payer.user.pk], secrets.token_hex(8)
        sponsor = self.chance.choice([None, None, self.chance.choice(self.terms).policy.sponsor])
        order = Order(self.chance.randint(100, 10_000), currency, sponsor=sponsor)
        if self.chance.random() < 0.5:
            pack = self.chance.choice(self.packs[currency])
            order = Order(pack.amount_minor, currency, pack, sponsor=sponsor)

        def press() -> object:
            return purchases.buy(user=payer.user, order=order, key=key, now=self.now)

        self._pay(payer, press)
        if self.chance.random() < 0.3:
            self._pay(payer, press)

    def _pay(self, payer: Payer, act: Callable[[], object]) -> None:
        """Pay; where the card cannot, its holder confirms, captures another one, or gives up."""
        for _ in range(3):
            try:
                act()
                return
            except BillingUnavailable as error:
                self.counts[error.code] += 1
            except (AuthenticationRequired, CardDeclined, PaymentMethodRequired) as error:
                self.counts[error.code] += 1
                if self.chance.random() < 0.5:
                    return
                if isinstance(error, AuthenticationRequired):
                    self.stripe.confirm(error.members["clientSecret"])
                else:
                    self.stripe.capture(payer.customer.stripe_customer_id, VISA)
                self.deliver()

    def change_card(self, payer: Payer) -> None:
        card = self.chance.choice([VISA, VISA, DECLINES, NEEDS_CONFIRMATION])
        self.stripe.capture(payer.customer.stripe_customer_id, card)

    def consent(self, payer: Payer) -> None:
        """Turn automatic top-up on, with new terms, or off."""
        if self.chance.random() < 0.2:
            top_ups.withdraw(user=payer.user, now=self.now)
            return
        pack = self.chance.choice(self.packs[self.currencies[payer.user.pk]])
        limit = pack.amount_minor * self.chance.randint(1, 3)
        gives = purchases.credits_of(pack, rate_in_force(currency=pack.currency, at=self.now))
        terms = Terms(self.chance.randint(1, gives), pack.code, limit, _CONSENT)
        top_ups.consent(user=payer.user, terms=terms, now=self.now)

    def refund(self, payer: Payer) -> None:
        payout = self._payout_of(payer)
        left = payout.charged_minor - payout.returned_minor if payout else 0
        if payout and left > 0:
            refund = self.stripe.refund(payout.stripe_payment_intent_id, self.chance.randint(1, left))
            if self.chance.random() < 0.2:
                self.stripe.fail_refund(refund)

    def dispute(self, payer: Payer) -> None:
        if self.disputes and self.chance.random() < 0.5:
            self.stripe.reinstate(self.disputes.pop(self.chance.randrange(len(self.disputes))))
            return
        payout = self._payout_of(payer)
        if payout and not payout.returned_minor and payout.stripe_payment_intent_id not in self.disputed:
            self.disputed.add(payout.stripe_payment_intent_id)
            self.disputes.append(self.stripe.dispute(payout.stripe_payment_intent_id))

    def _payout_of(self, payer: Payer) -> Payout | None:
        payouts: list[Payout | None] = [None, *Payout.objects.filter(user=payer.user).order_by("pk")]
        return self.chance.choice(payouts)

    def leave(self, payer: Payer) -> None:
        """Delete the account, of which nothing is left the same day."""
        if len(self.payers) < 3:
            return
        deletion.leave_stripe(payer.user, self.now)
        tamper(
            "INSERT INTO users_accountdeletion (user_id, status, waits_for, requested_at, billing_ended_at, erased_at)"
            " VALUES (%s, 'erased', '', %s, %s, %s)",
            payer.user.pk,
            *[self.now] * 3,
        )
        self.payers.remove(payer)

    # Credits

    def earn(self, payer: Payer) -> None:
        entries.grant(
            user=payer.user, credits=self.chance.randint(1, 5_000), source="SURVEYS",
            key=f"earning:test:{secrets.token_hex(8)}",
        )  # fmt: skip

    def adjust(self, payer: Payer) -> None:
        moved = self.chance.choice([-1, 1]) * self.chance.randint(1, 2_000)
        entries.adjust(user=payer.user, credits=moved, key=secrets.token_hex(8), actor=None, reason="test")

    def call(self, payer: Payer) -> None:
        """Relay a call: a hold, its charge, and an attempt that was mined."""
        account = CreditAccount.objects.get(user=payer.user)
        spendable = account.available + debt_terms([(payer.user.pk, _DEBT_LIMIT)])[0].limit
        if spendable < 1:
            return
        cost = self.chance.randint(1, self.chance.choice([spendable, min(5_000, spendable)]))
        hold = place_hold(
            user=payer.user, credits=cost, key=secrets.token_hex(8), debt_limit=_DEBT_LIMIT
        ).hold
        self.mine(payer, hold, cost)
        if self.chance.random() < 0.9:
            self.settle(hold, cost)

    def sponsored_call(self, payer: Payer) -> None:
        """Relay a call that a sponsor pays, wholly or in part."""
        terms = self.chance.choice(self.terms)
        most = min(5_000, CreditAccount.objects.get(sponsor=terms.policy.sponsor).available)
        if terms.share_percent < 100:
            own = max(0, CreditAccount.objects.get(user=payer.user).available)
            most = min(most, own * 100 // (100 - terms.share_percent))
        if most > 0:
            cost = self.chance.randint(1, most)
            hold = self.sponsored_hold(payer, terms, cost)
            used = self.chance.choice([0, cost, self.chance.randint(1, cost)])
            self.mine(payer, hold, used)
            if self.chance.random() < 0.9:
                self.settle(hold, used)

    def sponsored_hold(self, payer: Payer, terms: Any, cost: int) -> CreditHold:
        """Place the holds of a sponsored call, and return the user's."""
        part, key = sponsor_part(cost, share_percent=terms.share_percent), secrets.token_hex(8)
        hold = place_hold(user=payer.user, credits=cost - part, key=key).hold
        assert pay(terms, hold_id=hold.pk, user_id=payer.user.pk, key=key, part=part, now=self.now) is None
        return hold

    def mine(self, payer: Payer, hold: CreditHold, cost: int) -> Attempt:
        """Store a call with an attempt that was mined."""
        digest = "0x" + secrets.token_hex(32)
        call = make(
            RelayTransaction, user=payer.user, digest=digest, relayer=self.relayer, hold=hold, transaction_hash=digest,
            expected_cost=cost, real_cost=cost, status="Success", created_at=self.now, settled_at=self.now,
        )  # fmt: skip
        return make(
            Attempt, is_mined=True, relay_transaction=call, transaction_hash=digest, max_fee_per_gas_wei=9 * _GWEI,
            gas_used=self.chance.randint(21_000, 100_000),
            effective_gas_price_wei=self.chance.randint(1, 9 * _GWEI), created_at=self.now, mined_at=self.now,
        )  # fmt: skip

    def settle(self, hold: CreditHold, cost: int) -> None:
        """Charge a call to all who pay it, or release their holds where it has cost nothing."""
        costs = holding.divided({hold.pk: cost}, holding.shares_of(hold_ids=[hold.pk]))
        holds.close(costs=costs)
        holding.recount(hold_ids=[hold.pk])
        if cost:
            self.charged[hold.pk] = costs

    def reverse(self, _: Payer) -> None:
        """Undo the charge of a call, and perhaps charge it again."""
        if self.charged:
            hold_id = self.chance.choice(list(self.charged))
            costs = self.charged.pop(hold_id)
            holds.reopen(hold_ids=list(costs))
            if self.chance.random() < 0.5:
                holds.close(costs=costs)
            holding.recount(hold_ids=[hold_id])

    def fund_sponsor(self, _: Payer) -> None:
        self.adjust_sponsor(
            self.chance.choice(self.terms).policy.sponsor, self.chance.randint(10_001, 50_000)
        )

    def adjust_sponsor(self, sponsor: Sponsor, credits: int) -> None:
        """Have support ask for an adjustment, and finance approve it."""
        approval = funding.request(
            sponsor=sponsor,
            credits=credits,
            key=secrets.token_hex(8),
            actor=self.support,
            reason="an invoice",
        )
        assert approval.needs_second_person
        approvals.approve(request_id=approval.pk, actor=self.finance, reason="paid")

    def fund(self, _: Payer) -> None:
        """Transfer coins from the treasury to a relayer."""
        make(
            TopUp, relayer=self.relayer, status=TopUp.Status.MINED, fee_wei=self.chance.randint(1, 10**14),
            created_at=self.now, ended_at=self.now,
        )  # fmt: skip
