"""What a deleted account owes returns with its profile, once; proofs and sums stay right."""

import secrets
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils.timezone import now

from credits.models import CreditAccount, CreditEntry, Debtor, EntrySource
from credits.queries import balance_of
from credits.services import debts, entries
from credits.services.reconciliation import find_differences
from credits.services.statements import Sql
from gateway.common.db import all_rows
from payments.services.reconciliation import repairs
from proofs.services.roots import close_roots
from tests.credits.causes import causeless
from tests.credits.holding import capture, place_hold
from tests.credits.rows import query
from tests.fakes.billing import FakeBilling
from tests.fakes.profiles import Profile
from tests.payments.payers import Payer
from tests.payments.webhook_events import process_events
from tests.proofs.roots import audited, export_faults
from tests.threads import at_once, waits_for_this_transaction
from tests.users.auth_client import authenticate, signed_in
from users.errors import AccountDeleted
from users.models import AccountDeletion, User
from users.services import deletion
from users.services.profiles import user_of_profile

# Only the owner of the tables may erase.
pytestmark = [pytest.mark.usefixtures("owner_connection"), pytest.mark.django_db]


def user_of(profile: Profile) -> User:
    user, _ = authenticate(signed_in(profile).access)
    return user


def spend(user: User, credits: int) -> None:
    """Let the user spend this number of credits, on debt too."""
    held = place_hold(user=user, credits=credits, key=secrets.token_hex(16), debt_limit=10**9).hold
    capture(hold_id=held.pk, credits=credits)


def in_debt(profile: Profile, stripe: FakeBilling, *, times: int = 2) -> User:
    """Return the profile's user, who has paid 0.50 and spent all of it twice, or `times` times."""
    user = user_of(profile)
    Payer(stripe, user).with_card().upsert(50)
    repairs.pay_out_missed_invoices(now=stripe.now())
    paid = balance_of(user).balance
    assert paid > 0
    spend(user, times * paid)
    assert balance_of(user).balance == paid - times * paid
    return user


def delete(profile: Profile) -> User:
    """Delete the account of the profile, and return its user without a name."""
    user, token = authenticate(signed_in(profile).access)
    row = deletion.request(user=user, session=token.session, now=now())
    close_roots()
    later = row.requested_at + timedelta(minutes=5)
    deletion.end_billing(now=later)
    assert deletion.erase_due(now=later) == 1
    user.refresh_from_db()
    assert user.profile_address is None
    return user


def transfers() -> list[tuple[int, int]]:
    """Return account and amount of all entries that moved a debt."""
    rows = CreditEntry.objects.filter(source=EntrySource.DEBT_TRANSFER).order_by("id")
    return list(rows.values_list("account_id", "amount"))


def assert_books_are_right() -> None:
    close_roots()
    assert (find_differences(), audited(), export_faults()) == ([], [], [])
    assert causeless(EntrySource.DEBT_TRANSFER) == []


def test_a_debt_returns_with_the_profile_once(profile: Profile, stripe: FakeBilling) -> None:
    old = in_debt(profile, stripe)
    owed = -balance_of(old).balance
    delete(profile)
    assert balance_of(old).balance == -owed

    new = user_of(profile)

    assert new.pk != old.pk
    assert (balance_of(old).balance, balance_of(new).balance) == (0, -owed)
    moved = [(old.credit_account.pk, owed), (new.credit_account.pk, -owed)]
    assert transfers() == moved
    debts.return_due()
    user_of(profile)
    assert transfers() == moved
    assert_books_are_right()
    # It can spend again what it pays beyond the debt, and deleting again brings the debt back again.
    entries.grant(user=new, credits=1, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    delete(profile)
    third = user_of(profile)
    assert [balance_of(user).balance for user in (old, new, third)] == [0, 0, 1 - owed]
    assert_books_are_right()


@pytest.mark.parametrize("by_webhook", [True, False])
def test_a_dispute_after_the_deletion_returns_likewise(
    profile: Profile, stripe: FakeBilling, by_webhook: bool
) -> None:
    def claw_back() -> None:
        if by_webhook:
            process_events(stripe.events[-1:], now=stripe.now())
        else:
            repairs.claw_back_missed_money(now=stripe.now())

    old = in_debt(profile, stripe, times=1)
    payer = Payer(stripe, old)
    intent = payer.payout.stripe_payment_intent_id
    delete(profile)
    # Disputed before the profile returns.
    stripe.dispute(intent, 20)
    claw_back()
    disputed = -balance_of(old).balance
    assert disputed > 0
    new = user_of(profile)
    assert balance_of(new).balance == -disputed
    # And after it.
    stripe.refund(intent, 10)
    claw_back()
    refunded = -balance_of(old).balance
    assert refunded > 0
    assert debts.return_due() == 1
    assert debts.return_due() == 0
    assert (balance_of(old).balance, balance_of(new).balance) == (0, -disputed - refunded)
    assert_books_are_right()


def test_an_account_that_cannot_come_to_owe_leaves_no_digest(profile: Profile, stripe: FakeBilling) -> None:
    user = user_of(profile)
    entries.grant(user=user, credits=5, source=EntrySource.CHECK_IN, key=secrets.token_hex(8))
    delete(profile)
    assert not Debtor.objects.exists()


def test_a_digest_identifies_no_user_without_its_key_and_expires(
    profile: Profile, stripe: FakeBilling, settings: Any
) -> None:
    old = in_debt(profile, stripe)
    delete(profile)
    debtor = Debtor.objects.get()
    assert profile.profile_address.lower()[2:] not in debtor.digest
    assert debtor.key_id == debts.key_id(settings.DEBT_DIGEST_KEYS[0])
    assert debts.forget_settled(now=debtor.erased_at + debts.KEPT_IN_DEBT) == 0
    entries.adjust(user=old, credits=10_000, key=secrets.token_hex(8), actor=None, reason="written off")
    assert debts.forget_settled(now=debtor.erased_at + debts.KEPT) == 0
    assert debts.forget_settled(now=debtor.erased_at + debts.KEPT + timedelta(seconds=1)) == 1
    assert transfers() == []


def test_all_keys_find_a_debt_and_the_first_digests(
    profile: Profile, stripe: FakeBilling, settings: Any
) -> None:
    first, second = settings.DEBT_DIGEST_KEYS[0], secrets.token_urlsafe(40)
    in_debt(profile, stripe)
    delete(profile)
    settings.DEBT_DIGEST_KEYS = [second, first]
    new = user_of(profile)
    assert balance_of(new).balance < 0
    delete(profile)
    ids = {debtor.account_id: debtor.key_id for debtor in Debtor.objects.all()}
    assert ids[new.credit_account.pk] == debts.key_id(second)
    # Without the key, the debt stays where it is.
    settings.DEBT_DIGEST_KEYS = [secrets.token_urlsafe(40)]
    assert balance_of(user_of(profile)).balance == 0


def test_another_profile_takes_over_nothing(profile: Profile, stripe: FakeBilling) -> None:
    in_debt(profile, stripe)
    delete(profile)
    other = user_of_profile(profile_address="0x" + secrets.token_hex(20))
    assert balance_of(other).balance == 0
    assert transfers() == []


def test_16_concurrent_returns_take_the_debt_over_once(
    profile: Profile, stripe: FakeBilling, transactional_db: None
) -> None:
    old = in_debt(profile, stripe)
    owed = -balance_of(old).balance
    delete(profile)
    results = at_once([partial(user_of_profile, profile_address=profile.profile_address)] * 16)
    (pk,) = {user.pk for user in results if isinstance(user, User)}
    entries.reverse(
        user=old, credits=3, source=EntrySource.PAYOUT_CLAWBACK, key=secrets.token_hex(8), reason="a dispute"
    )
    assert sum(moved for moved in at_once([debts.return_due] * 8) if isinstance(moved, int)) == 1
    assert balance_of(User.objects.get(pk=pk)).balance == -owed - 3
    assert CreditAccount.objects.get(user=old).balance == 0
    assert len(transfers()) == 4
    assert_books_are_right()


def test_a_debt_found_before_its_successor_was_erased_waits_for_the_next_account(
    profile: Profile, stripe: FakeBilling, transactional_db: None
) -> None:
    old = in_debt(profile, stripe)
    owed = -balance_of(old).balance
    delete(profile)
    new = user_of(profile)
    entries.grant(user=new, credits=owed, source=EntrySource.CHECK_IN, key=secrets.token_hex(8))
    entries.reverse(
        user=old, credits=3, source=EntrySource.PAYOUT_CLAWBACK, key=secrets.token_hex(8), reason="a dispute"
    )

    def erased_meanwhile(execute: Callable[..., Any], statement: str, *others: Any) -> Any:
        if statement == Sql.take_over_debt:
            at_once([partial(delete, profile)])
        return execute(statement, *others)

    with connection.execute_wrapper(erased_meanwhile):
        assert debts.return_due() == 0

    third = user_of(profile)
    assert [balance_of(user).balance for user in (old, new, third)] == [0, 0, -3]
    assert_books_are_right()


def test_a_deletion_waits_until_a_debt_has_moved(
    profile: Profile, stripe: FakeBilling, transactional_db: None
) -> None:
    old = in_debt(profile, stripe)
    delete(profile)
    user, token = authenticate(signed_in(profile).access)
    entries.reverse(
        user=old, credits=3, source=EntrySource.PAYOUT_CLAWBACK, key=secrets.token_hex(8), reason="a dispute"
    )
    debtor = Debtor.objects.get(account__user=old)
    moves = {
        "old": debtor.account_id,
        "new": debtor.successor_id,
        "source": "DEBT_TRANSFER",
        "reason": "test",
    }
    request = partial(deletion.request, user=user, session=token.session, now=now())

    with waits_for_this_transaction(request) as requested:
        assert len(all_rows(Sql.take_over_debt, moves)) == 2

    assert isinstance(requested.result(), AccountDeletion)
    assert balance_of(old).balance == 0


def test_a_sign_in_during_the_erasure_is_refused_or_takes_the_debt_over(
    profile: Profile, stripe: FakeBilling, transactional_db: None
) -> None:
    old = in_debt(profile, stripe)
    owed = -balance_of(old).balance
    user, token = authenticate(signed_in(profile).access)
    row = deletion.request(user=user, session=token.session, now=now())
    close_roots()
    with pytest.raises(AccountDeleted):
        user_of_profile(profile_address=profile.profile_address)
    later = row.requested_at + timedelta(minutes=5)
    deletion.end_billing(now=later)

    def return_at_once() -> int:
        user_of_profile(profile_address=profile.profile_address)
        return 0

    calls: list[Callable[[], int]] = [lambda: deletion.erase_due(now=later), *[return_at_once] * 15]
    results = at_once(calls)
    assert results[:1] == [1]
    assert {type(result) for result in results} <= {int, AccountDeleted}
    new = user_of(profile)
    assert (balance_of(old).balance, balance_of(new).balance) == (0, -owed)
    assert AccountDeletion.objects.get().status == AccountDeletion.Status.ERASED
    assert query("SELECT count(*) FROM credits_debtor WHERE successor_id IS NULL") == [(0,)]
    assert_books_are_right()
