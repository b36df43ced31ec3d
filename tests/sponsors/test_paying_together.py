"""Many calls at the same moment, at each limit of a policy: none is passed by one credit or one call."""

import random
import secrets
from functools import partial
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from credits.models import CreditAccount, CreditHold
from credits.services import reconciliation
from gateway.common import db
from sponsors.models import PolicyVersion, Sponsor, SponsoredCall, Usage, UsedVoucher
from sponsors.services import holding
from tests.credits.holding import place_hold
from tests.factories import UserFactory
from tests.sponsors import sponsorships
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once
from users.models import User

pytestmark = pytest.mark.django_db(transaction=True)
CLIENTS = 24


def pay(version: PolicyVersion, user: User, part: int, voucher: str | None = None) -> str | None:
    """Have the sponsor pay for a call of a user, as the acceptance of a call does; return the rule that refuses it."""
    return pay_at_once((version, user, part, voucher))[0]


def pay_at_once(*wanted: tuple[PolicyVersion, User, int, str | None]) -> list[str | None]:
    """Have sponsors pay for calls in one statement, as the acceptance of a batch does."""
    with transaction.atomic():
        calls = []
        for version, user, part, voucher in wanted:
            key = secrets.token_hex(12)
            hold = place_hold(user=user, credits=0, key=key).hold
            calls.append(
                sponsorships.call_of(
                    version,
                    hold_id=hold.pk,
                    user_id=user.pk,
                    key=key,
                    part=part,
                    now=timezone.now(),
                    voucher=voucher,
                )
            )
        outcomes = sponsorships.pay_all(*calls)
        refused = [
            call["hold_id"] for call, outcome in zip(calls, outcomes, strict=True) if outcome is not None
        ]
        if refused:
            db.all_rows("SELECT credits_withdraw_holds(%(holds)s::bigint[])::text", {"holds": refused})
            holding.withdraw(hold_ids=refused)
        return outcomes


def assert_agree(sponsor: Sponsor) -> None:
    """The account, its holds, the calls and what is counted agree."""
    account = CreditAccount.objects.get(sponsor=sponsor)
    held = list(CreditHold.objects.filter(account=account, status="HELD").values_list("amount", flat=True))
    assert (account.held, account.open_holds) == (sum(held), len(held))
    counted = Usage.objects.get(policy__sponsor=sponsor, scope="campaign")
    assert (counted.credits, counted.calls) == (sum(held), len(held))
    assert SponsoredCall.objects.filter(version__policy__sponsor=sponsor).count() == len(held)
    assert reconciliation.find_differences() == []


# Each with the number of calls that fit, of `part` credits.
BOUNDS: dict[str, Any] = {
    "sponsor-limit-user-day": lambda part, fits: {"user_day_credits": part * fits + part - 1},
    "sponsor-limit-user-total": lambda part, fits: {"user_credits": part * fits + part - 1},
    "sponsor-limit-user-calls": lambda part, fits: {"user_calls": fits},
    "sponsor-limit-window": lambda part, fits: {
        "window_credits": part * fits + part - 1,
        "window_seconds": 10**8,
    },
    "sponsor-limit-window-calls": lambda part, fits: {"window_calls": fits, "window_seconds": 10**8},
    "sponsor-limit-campaign": lambda part, fits: {"campaign_credits": part * fits},
    "sponsor-limit-campaign-calls": lambda part, fits: {"campaign_calls": fits},
}


@pytest.mark.parametrize("rule", BOUNDS)
def test_concurrent_calls_exceed_no_limit(rule: str) -> None:
    part, fits = random.randint(2, 50), random.randint(1, CLIENTS - 1)
    sponsor, user = make_sponsor(10**6), UserFactory.create()
    version = make_policy(sponsor, **BOUNDS[rule](part, fits))
    users = [user] * CLIENTS if "user" in rule else [UserFactory.create() for _ in range(CLIENTS)]
    outcomes = at_once([partial(pay, version, one, part) for one in users])
    assert outcomes.count(None) == fits
    assert set(outcomes) == {None, rule}
    assert_agree(sponsor)


@pytest.mark.parametrize("beyond", [0, 1])
def test_the_statement_itself_pays_up_to_the_credits_of_a_call(beyond: int) -> None:
    limit = random.randint(2, 10_000)
    sponsor = make_sponsor()
    version = make_policy(sponsor, call_credits=limit)
    outcome = pay(version, UserFactory.create(), limit + beyond)
    assert outcome == ("sponsor-limit-call" if beyond > 0 else None)
    assert SponsoredCall.objects.count() == (0 if beyond > 0 else 1)
    assert CreditAccount.objects.get(sponsor=sponsor).held == (0 if beyond > 0 else limit + beyond)


def test_the_statement_itself_pays_one_call_for_a_voucher() -> None:
    sponsor, other = make_sponsor(), make_sponsor()
    version, theirs = make_policy(sponsor), make_policy(other)
    voucher = "0x" + secrets.token_hex(32)
    outcomes = [pay(each, UserFactory.create(), 3, voucher) for each in (version, version, theirs)]
    assert outcomes == [None, "sponsor-voucher-used", None]
    assert pay(version, UserFactory.create(), 3, "0x" + secrets.token_hex(32)) is None
    assert UsedVoucher.objects.count() == 3
    for each in (sponsor, other):
        assert_agree(each)


def test_a_batch_pays_one_call_for_a_voucher_and_none_above_the_credits_of_a_call() -> None:
    limit = random.randint(2, 10_000)
    sponsor, other = make_sponsor(), make_sponsor()
    version, theirs = make_policy(sponsor, call_credits=limit), make_policy(other, call_credits=limit)
    voucher = "0x" + secrets.token_hex(32)
    wanted = [
        (version, limit, voucher),
        (version, 1, voucher),
        (theirs, limit, voucher),
        (version, limit + 1, None),
        (version, 1, None),
    ]
    outcomes = pay_at_once(*((one, UserFactory.create(), part, text) for one, part, text in wanted))
    assert outcomes == [None, "sponsor-voucher-used", None, "sponsor-limit-call", None]
    for each, paid in ((sponsor, limit + 1), (other, limit)):
        assert CreditAccount.objects.get(sponsor=each).held == paid
        assert_agree(each)
    # None of these is refused alone, so they are paid together or not at all.
    twice = "0x" + secrets.token_hex(32)
    outcomes = pay_at_once(*((version, UserFactory.create(), 1, text) for text in (twice, twice, None)))
    assert outcomes == [None, "sponsor-voucher-used", None]
    assert_agree(sponsor)


def test_concurrent_calls_never_put_a_sponsor_into_debt() -> None:
    part, fits = random.randint(2, 50), random.randint(1, CLIENTS - 1)
    sponsor = make_sponsor(part * fits + part - 1)
    version = make_policy(sponsor)
    users = [UserFactory.create() for _ in range(CLIENTS)]
    outcomes = at_once([partial(pay, version, one, part) for one in users])
    assert outcomes.count(None) == fits
    assert set(outcomes) == {None, "sponsor-without-credits"}
    assert_agree(sponsor)


def test_calls_of_several_sponsors_wait_for_each_other_in_one_order() -> None:
    sponsors = [make_sponsor(10**6) for _ in range(4)]
    versions = [make_policy(sponsor) for sponsor in sponsors]
    users = [UserFactory.create() for _ in range(8)]
    calls = [(random.choice(versions), random.choice(users)) for _ in range(CLIENTS)]
    assert at_once([partial(pay, version, user, 3) for version, user in calls]) == [None] * CLIENTS
    for sponsor in {version.policy.sponsor for version, _ in calls}:
        assert_agree(sponsor)
