"""Calls that a sponsor pays: who holds, who is charged, and what each limit of a policy lets through."""

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone

from credits.models import CreditEntry, CreditHold
from credits.queries import balance_of
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.client import JsonRpcChainClient, set_chain_client
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.models import RelayTransaction
from relay.queries.reports import spending_of
from relay.services.accepting import preparation, unsigned
from relay.services.accepting.preparation import Draft, PreparedCall
from relay.services.sending import cancellation, replacement
from rewards.models import ExperienceEntry
from sponsors.models import Policy, Sponsor, SponsoredCall
from sponsors.services.paying import SponsorChoice
from tests.relay.callers import report_of
from tests.relay.chain import Chain
from tests.relay.conftest import Settle
from tests.relay.quoting import caller_of, execute_prepared
from tests.relay.signing import set_data_payload
from tests.relay.sponsoring import account_of, all_rows, execute_sponsored, hold_of, row_of, used
from tests.relay.workers import assert_books_agree, broadcast_all, bumped_fees, resend, track
from tests.sponsors.sponsorships import make_policy, make_sponsor, new_version
from users.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def newcomer(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit, which a call costs more than."""
    return open_account(profile, credits=1)


def test_a_newcomer_pays_nothing_for_a_call_that_a_sponsor_pays(
    newcomer: User, new_call: Callable[..., RelayCall], settle: Settle
) -> None:
    sponsor = make_sponsor()
    version = make_policy(sponsor)
    transaction_hash = execute_sponsored(newcomer, new_call(), sponsor)

    row = row_of(transaction_hash)
    held = hold_of(row).amount
    assert (row.hold.amount, row.expected_cost, balance_of(newcomer).held) == (0, 0, 0)
    assert (account_of(sponsor).held, account_of(sponsor).open_holds) == (held, 1)
    assert held > 1
    assert used(sponsor) == dict.fromkeys(("user", "user-day", "campaign"), (held, 1))
    assert SponsoredCall.objects.get().version == version
    report = report_of(user=newcomer, transaction_hash=transaction_hash)
    assert (report.credits_used, report.credits_before, report.credits_after) == (0, 1, 1)

    assert settle() == 1
    row.refresh_from_db()
    cost = row.real_cost
    assert (row.status, row.hold.status, hold_of(row).captured_amount) == ("Success", "RELEASED", cost)
    account = account_of(sponsor)
    assert (account.balance, account.held, account.open_holds) == (100_000 - cost, 0, 0)
    assert balance_of(newcomer) == (1, 0, 1)
    assert used(sponsor) == dict.fromkeys(("user", "user-day", "campaign"), (cost, 1))
    report = report_of(user=newcomer, transaction_hash=transaction_hash)
    assert (report.credits_used, report.credits_before, report.credits_after) == (0, 1, 1)
    assert report.sponsor == sponsor.slug
    assert not ExperienceEntry.objects.filter(progress__user=newcomer).exists()
    assert spending_of(user=newcomer, now=timezone.now()).days == []
    assert_books_agree()


@pytest.mark.parametrize("percent", [1, 99])
def test_each_side_pays_its_share_and_the_sponsor_the_rounding(
    user: User, new_call: Callable[..., RelayCall], settle: Settle, percent: int
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, share_percent=percent)
    before = balance_of(user).balance
    row = row_of(execute_sponsored(user, new_call(), sponsor))
    held = row.hold.amount + hold_of(row).amount
    assert hold_of(row).amount == -(-held * percent // 100)

    assert settle() == 1
    row.refresh_from_db()
    of_sponsor = -(-row.real_cost * percent // 100)
    assert 100_000 - account_of(sponsor).balance == of_sponsor
    assert before - balance_of(user).balance == row.real_cost - of_sponsor
    gained = ExperienceEntry.objects.filter(progress__user=user).values_list("amount", flat=True)
    assert sum(gained) == row.real_cost - of_sponsor
    assert_books_agree()


LIMITS = {
    "call_credits": "sponsor-limit-call",
    "user_day_credits": "sponsor-limit-user-day",
    "user_credits": "sponsor-limit-user-total",
    "window_credits": "sponsor-limit-window",
    "campaign_credits": "sponsor-limit-campaign",
}


@pytest.mark.parametrize(("limit", "code"), LIMITS.items())
def test_a_limit_allows_calls_up_to_and_including_it(
    services: Services, newcomer: User, new_call: Callable[..., RelayCall], limit: str, code: str
) -> None:
    # All calls have one price: on a busy machine, Anvil tells the base fee of a new block late.
    set_chain_client(JsonRpcChainClient([services.rpc_url], timeout_seconds=60, price_seconds=3600))
    sponsor = make_sponsor()
    policy = make_policy(sponsor).policy
    # Both calls begin a channel, which costs the gas of a new storage slot.
    first, second = random.sample(range(0x101, 0x200), 2)
    held = hold_of(row_of(execute_sponsored(newcomer, new_call(channel=first), sponsor))).amount
    # The window counts from its version on.
    already = 0 if limit in {"call_credits", "window_credits"} else held
    window = {"window_seconds": 86_400} if limit == "window_credits" else {}
    new_version(policy, **{limit: already + held - 1}, **window)
    call, before = new_call(channel=second), all_rows()
    with pytest.raises(DomainError) as refusal:
        execute_sponsored(newcomer, call, sponsor)
    assert refusal.value.code == code
    members = refusal.value.members
    assert (members["limit"], members["fits"]) == (already + held - 1, held - 1)
    assert members.get("used", 0) == already
    assert ("resets" in members) == (limit in {"user_day_credits", "window_credits"})
    assert all_rows() == before

    new_version(policy, **{limit: already + held}, **window)
    assert hold_of(row_of(execute_sponsored(newcomer, call, sponsor))).amount == held


def test_calls_of_a_user_are_counted(newcomer: User, new_call: Callable[..., RelayCall]) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, user_calls=2)
    for channel in (1, 2):
        execute_sponsored(newcomer, new_call(channel=channel), sponsor)
    before = all_rows()
    with pytest.raises(DomainError) as refusal:
        execute_sponsored(newcomer, new_call(channel=3), sponsor)
    assert refusal.value.code == "sponsor-limit-user-calls"
    assert (refusal.value.members["limit"], refusal.value.members["used"]) == (2, 2)
    assert all_rows() == before


def _freeze(sponsor: Sponsor) -> None:
    Sponsor.objects.filter(pk=sponsor.pk).update(is_frozen=True)


def _switch_off(sponsor: Sponsor) -> None:
    Policy.objects.filter(sponsor=sponsor).update(is_enabled=False)


def _end(sponsor: Sponsor) -> None:
    new_version(Policy.objects.get(sponsor=sponsor), ends_at=timezone.now() - timedelta(seconds=1))


def _list_others(sponsor: Sponsor) -> None:
    new_version(Policy.objects.get(sponsor=sponsor), profiles="listed", listed=["0x" + "22" * 20])


def _forbid_prices(sponsor: Sponsor) -> None:
    new_version(Policy.objects.get(sponsor=sponsor), gas_price_ceiling_wei=1)


REFUSALS: dict[str, Callable[[Sponsor], None]] = {
    "sponsor-frozen": _freeze,
    "sponsor-no-policy": _switch_off,
    "sponsor-ended": _end,
    "sponsor-profile": _list_others,
    "sponsor-gas-price": _forbid_prices,
}


@pytest.mark.parametrize(("code", "change"), REFUSALS.items())
def test_a_call_without_a_paying_policy_is_refused_unless_it_allows_the_user_to_pay(
    user: User, new_call: Callable[..., RelayCall], code: str, change: Callable[[Sponsor], None]
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    change(sponsor)
    call, before = new_call(), all_rows()
    with pytest.raises(DomainError) as refusal:
        execute_sponsored(user, call, sponsor)
    assert refusal.value.code == code
    assert all_rows() == before

    row = row_of(execute_sponsored(user, call, sponsor, user_may_pay=True))
    assert row.hold.amount == balance_of(user).held > 0
    assert not SponsoredCall.objects.exists()


def test_a_sponsor_never_has_debt(newcomer: User, new_call: Callable[..., RelayCall]) -> None:
    sponsor = make_sponsor(1)
    make_policy(sponsor)
    before = all_rows()
    with pytest.raises(DomainError) as refusal:
        execute_sponsored(newcomer, new_call(), sponsor)
    assert refusal.value.code == "sponsor-without-credits"
    assert all_rows() == before


def test_an_unknown_sponsor_is_refused(user: User, new_call: Callable[..., RelayCall]) -> None:
    before = all_rows()
    with pytest.raises(DomainError) as refusal:
        execute_sponsored(user, new_call(), "nobody")
    assert refusal.value.code == "sponsor-unknown"
    assert all_rows() == before


def test_the_first_policy_that_fits_pays(newcomer: User, new_call: Callable[..., RelayCall]) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, position=3)
    first = make_policy(sponsor, position=2)
    make_policy(sponsor, position=1, call_credits=1)
    execute_sponsored(newcomer, new_call(), sponsor)
    assert SponsoredCall.objects.get().version == first


def test_a_call_is_paid_once_however_often_it_is_sent(
    newcomer: User, new_call: Callable[..., RelayCall]
) -> None:
    sponsor, call = make_sponsor(), new_call()
    make_policy(sponsor)
    first = execute_sponsored(newcomer, call, sponsor)
    before = all_rows()
    assert execute_sponsored(newcomer, call, sponsor) == first
    assert all_rows() == before


def test_an_undone_settlement_is_undone_for_the_sponsor(
    newcomer: User, new_call: Callable[..., RelayCall], settle: Settle, chain: Chain
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, campaign_credits=100_000)
    row = row_of(execute_sponsored(newcomer, new_call(), sponsor))
    held = hold_of(row).amount
    assert settle() == 1
    row.refresh_from_db()
    undone = row.real_cost
    chain.reorganise(settings.CONFIRMATIONS)
    track()
    row.refresh_from_db()
    assert row.status == "Submitted"
    assert (account_of(sponsor).balance, account_of(sponsor).held) == (100_000, held)
    assert used(sponsor)["campaign"] == (held, 1)
    assert_books_agree()

    resend()
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, account_of(sponsor).balance) == ("Success", 100_000 - row.real_cost)
    assert used(sponsor)["campaign"] == (row.real_cost, 1)
    entries = CreditEntry.objects.filter(account=account_of(sponsor)).order_by("pk")
    assert [entry.amount for entry in entries][1:] == [-undone, undone, -row.real_cost]
    assert balance_of(newcomer) == (1, 0, 1)
    assert_books_agree()


def test_a_replacement_raises_no_hold_and_the_service_pays_the_rest(
    user: User, new_call: Callable[..., RelayCall], chain: Chain
) -> None:
    sponsor, before = make_sponsor(), balance_of(user)
    make_policy(sponsor)
    row = row_of(execute_sponsored(user, new_call(), sponsor))
    held = hold_of(row).amount
    broadcast_all()
    attempt = row.attempts.get()
    assert replacement.replace(attempt_id=attempt.pk, fees=bumped_fees(attempt), now=timezone.now())
    assert (hold_of(row).amount, account_of(sponsor).held, balance_of(user).held) == (held, held, 0)
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert account_of(sponsor).balance == 100_000 - min(held, row.real_cost)
    assert balance_of(user) == before
    assert_books_agree()


def test_a_call_without_effect_gives_its_credits_and_its_place_back(
    newcomer: User, new_call: Callable[..., RelayCall], chain: Chain
) -> None:

    sponsor = make_sponsor()
    make_policy(sponsor, user_calls=1)
    row = row_of(execute_sponsored(newcomer, new_call(), sponsor))
    cancellation.cancel_unsent(relay_transaction_id=row.pk, now=timezone.now())
    broadcast_all()
    chain.mine(settings.CONFIRMATIONS)
    assert track() == 1
    row.refresh_from_db()
    assert (row.status, hold_of(row).status) == ("Cancelled", "RELEASED")
    assert (account_of(sponsor).balance, account_of(sponsor).held) == (100_000, 0)
    assert used(sponsor) == dict.fromkeys(("user", "user-day", "campaign"), (0, 0))
    execute_sponsored(newcomer, new_call(channel=5), sponsor)
    assert_books_agree()


def prepare(user: User, profile: Profile, choice: SponsorChoice | None) -> PreparedCall:
    draft = Draft(set_data_payload(), controller=profile.controller.address, sponsor=choice)
    return preparation.prepare(caller=caller_of(user), draft=draft, now=timezone.now())


def test_prepare_shows_the_payer_and_the_quote_binds_it(
    newcomer: User, profile: Profile, settle: Settle
) -> None:
    sponsor = make_sponsor()
    version = make_policy(sponsor)
    prepared = prepare(newcomer, profile, SponsorChoice(sponsor.slug))
    assert prepared.refusals == ()
    assert prepared.sponsorship is not None
    assert prepared.sponsorship.credits == prepared.highest_cost
    assert prepared.quote is not None
    assert prepared.quote.sponsor_version == version
    assert not SponsoredCall.objects.exists()

    # A newer version changes nothing of what was quoted, and nobody need name the sponsor again.
    new_version(version.policy, call_credits=1)
    row = execute_prepared(newcomer, profile, prepared, quote=prepared.quote)
    assert hold_of(row).amount <= prepared.quote.credits
    assert SponsoredCall.objects.get().version == version
    assert settle() == 1
    assert balance_of(newcomer).balance == 1
    assert_books_agree()


def test_a_quoted_sponsor_that_is_frozen_pays_nothing(newcomer: User, profile: Profile) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor)
    prepared = prepare(newcomer, profile, SponsorChoice(sponsor.slug))
    _freeze(sponsor)
    before = all_rows()
    with pytest.raises(DomainError) as refusal:
        execute_prepared(newcomer, profile, prepared, quote=prepared.quote)
    assert refusal.value.code == "sponsor-frozen"
    assert all_rows() == before


def test_prepare_explains_why_a_sponsor_does_not_pay(user: User, profile: Profile) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, call_credits=1)
    refused = prepare(user, profile, SponsorChoice(sponsor.slug))
    assert [refusal.code for refusal in refused.refusals] == ["sponsor-limit-call"]
    assert refused.quote is None
    assert refused.sponsorship is None
    paid = prepare(user, profile, SponsorChoice(sponsor.slug, user_may_pay=True))
    assert paid.refusals == ()
    assert paid.sponsorship is None
    assert paid.sponsor_refusal is not None
    assert paid.sponsor_refusal.code == "sponsor-limit-call"
    assert paid.quote is not None
    assert paid.quote.sponsor_version is None


def test_a_call_that_is_never_signed_leaves_nothing_with_its_sponsor(
    newcomer: User, new_call: Callable[..., RelayCall]
) -> None:
    sponsor = make_sponsor()
    make_policy(sponsor, user_calls=1)
    row = row_of(execute_sponsored(newcomer, new_call(), sponsor))
    hold_id, sponsor_hold_id = row.hold_id, hold_of(row).pk
    # As an unsigned call is, between its two transactions: a hold, a slot, and no relay transaction.
    row.attempts.all().delete()
    RelayTransaction.objects.filter(pk=row.pk).delete()
    unsigned.keep([unsigned.Unsigned(_columns(row), row.relayer.address)])

    unsigned.give_up([unsigned.Unsigned({"hold_id": hold_id}, row.relayer.address)])

    assert not CreditHold.objects.filter(pk__in=[hold_id, sponsor_hold_id]).exists()
    assert not SponsoredCall.objects.exists()
    assert (account_of(sponsor).held, account_of(sponsor).open_holds) == (0, 0)
    assert used(sponsor) == dict.fromkeys(("user", "user-day", "campaign"), (0, 0))
    assert balance_of(newcomer) == (1, 0, 1)
    assert_books_agree()


def _columns(row: RelayTransaction) -> dict[str, Any]:
    return {
        "relayer_id": row.relayer_id,
        "account_nonce": 0,
        "hold_id": row.hold_id,
        "key_manager_address": row.key_manager_address,
        "controller_address": row.controller_address,
        "relay_nonce": row.relay_nonce,
        "gas_limit": row.gas_limit,
        "max_fee_per_gas_wei": 1,
        "max_extra_fee_wei": 0,
    }
