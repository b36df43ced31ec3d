"""A user deletes the account: pending work ends, nothing names them any more, and proofs stay valid."""

import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now
from rest_framework.test import APIClient

from checkin.queries import next_midnight
from checkin.services import checkins
from credits.models import CreditEntry, CreditHold, EntrySource
from credits.services import entries, holds
from earnings.models import NetworkUser
from gateway.common.errors import DomainError
from payments.models import BillingOperation, Customer, StripeEvent, Subscription
from proofs.services.proving import prove
from proofs.services.roots import close_roots
from relay.models import Attempt, FinalBlock, Loss, RelayTransaction
from sponsors.models import Member
from tests.credits.holding import place_hold
from tests.credits.rows import query
from tests.factories import UserFactory, make
from tests.fakes.billing import FakeBilling
from tests.fakes.profiles import Profile
from tests.payments.payers import Payer
from tests.portal.history_rows import relayed
from tests.proofs.roots import audited, export_faults
from tests.users.auth_client import Wallet, authenticate, signed_in
from users.errors import AccountDeleted
from users.models import AccountDeletion, SignInSession, User
from users.services import deletion

# Only the owner of the tables may erase.
pytestmark = [pytest.mark.usefixtures("owner_connection"), pytest.mark.django_db]
_Status = AccountDeletion.Status
PATH = "/api/user/account"


def delete(client: APIClient, access: str) -> Any:
    return client.delete(PATH, HTTP_AUTHORIZATION=f"Bearer {access}")


def request_deletion(profile: Profile) -> AccountDeletion:
    """Ask for the deletion as the profile's owner does, without HTTP."""
    user, token = authenticate(signed_in(profile).access)
    return deletion.request(user=user, session=token.session, now=now())


def run_due(row: AccountDeletion, *, minutes: float = 5) -> AccountDeletion:
    """Run beat's and the owner's job as of a later time."""
    later = row.requested_at + timedelta(minutes=minutes)
    deletion.end_billing(now=later)
    deletion.erase_due(now=later)
    row.refresh_from_db()
    return row


def rows_that_name(address: str) -> list[str]:
    """Return every table that has the address somewhere, as text in any casing or as bytes."""
    number = address[2:].lower()
    spellings = [number, *(text.encode().hex() for text in (address, address.lower()))]
    tables = query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return [
        table
        for (table,) in tables
        if query(
            f'SELECT 1 FROM "{table}" AS t WHERE lower(t::text) ~ %s LIMIT 1',  # noqa: S608 - names of our own tables
            "|".join(spellings),
        )
    ]


def add_history(user: User, stripe: FakeBilling, head: int, controller: str) -> StripeEvent:
    """Let the user earn, pay by card and relay a call, with a staff member's words; return an event about it."""
    payer = Payer(stripe, user).with_card()
    payer.upsert(2550)
    staff = UserFactory.create(profile_address=None, is_staff=True)
    entries.adjust(user=user, credits=90, key=secrets.token_hex(8), actor=staff, reason=f"for {user}")
    relayed(user, 1)
    RelayTransaction.objects.filter(user=user).update(controller_address=controller)
    call = RelayTransaction.objects.get(user=user)
    key = f"relay:{call.digest}:{controller}:0"
    CreditHold.objects.filter(pk=call.hold_id).update(key=key)
    Loss.objects.create(
        key=key, user=user, kind=Loss.Kind.REPLACEMENT, reserved_wei=1, lost_wei=1, reserved_at=now(), settled_at=now()
    )  # fmt: skip
    make(
        Attempt, is_mined=True, relay_transaction=call, transaction_hash=call.transaction_hash,
        raw=bytes.fromhex(str(user.profile_address)[2:]), block_number=head, block_hash="0x" + "ab" * 32,
    )  # fmt: skip
    return make(
        StripeEvent,
        raw_body=f'{{"customer": "{payer.customer.stripe_customer_id}", "email": "me@x.example"}}'.encode(),
    )


def test_no_row_identifies_an_erased_user_and_every_proof_stays_valid(
    client: APIClient, profile: Profile, wallet: Wallet, stripe: FakeBilling
) -> None:
    tokens, address = signed_in(profile), profile.profile_address
    user = User.objects.get(profile_address=address)
    head = 100 + secrets.randbelow(1_000)
    controller = profile.controller.address
    event = add_history(user, stripe, head, controller)
    make(Member, user=user)
    close_roots()
    proofs = {proof.entry: proof.leaf for proof in prove(CreditEntry.objects.filter(account__user=user))}
    FinalBlock.objects.create(number=head, block_hash="0x" + "ab" * 32)

    response = delete(client, tokens.access)
    row = run_due(AccountDeletion.objects.get())

    assert (response.status_code, response.json()["status"]) == (200, "requested")
    assert (row.status, row.waits_for) == (_Status.ERASED, "")
    assert rows_that_name(address) == rows_that_name(controller) == []
    customer = Customer.objects.get(user=user)
    assert stripe.is_customer_deleted(customer_id=customer.stripe_customer_id)
    assert Subscription.objects.get(user=user).status == Subscription.Status.CANCELED
    event.refresh_from_db()
    assert bytes(event.raw_body) == b""
    assert not SignInSession.objects.filter(user=user).exists()
    assert not NetworkUser.objects.filter(user=user).exists()
    assert not Member.objects.filter(user=user).exists()
    # What accounting needs is there: amounts, ids and hashes.
    assert {entry.source for entry in CreditEntry.objects.filter(account__user=user)} >= {
        EntrySource.STAFF_ADJUSTMENT,
        EntrySource.RELAY_TRANSACTION,
    }
    later = {proof.entry: proof.leaf for proof in prove(CreditEntry.objects.filter(account__user=user))}
    assert (later, audited(), export_faults()) == (proofs, [], [])
    # The same profile begins anew.
    new = User.objects.get(profile_address=wallet.me(wallet.verify()["access"])["address"])
    assert new.pk != user.pk
    assert new.credit_account.balance == 0


def test_a_deleted_account_is_closed_at_once_until_it_is_erased(
    client: APIClient, profile: Profile, wallet: Wallet
) -> None:
    tokens, elsewhere = signed_in(profile), signed_in(profile)
    assert delete(client, tokens.access).status_code == 200
    for pair in (tokens, elsewhere):
        assert delete(client, pair.access).json()["code"] == "session-ended"
        assert wallet.refresh(pair.refresh)["code"] == "session-ended"
    assert wallet.verify()["code"] == "account-deleted"
    with pytest.raises(AccountDeleted):
        signed_in(profile)
    assert AccountDeletion.objects.get().status == _Status.REQUESTED


def test_only_a_fresh_sign_in_deletes(client: APIClient, profile: Profile) -> None:
    access = signed_in(profile).access
    SignInSession.objects.update(created_at=now() - deletion.MAX_SIGN_IN_AGE)
    refused = delete(client, access).json()
    assert (refused["code"], refused["maxAgeSeconds"]) == ("fresh-sign-in-required", 600)
    assert not AccountDeletion.objects.exists()
    user = User.objects.get(profile_address=profile.profile_address)
    with pytest.raises(DomainError):  # A token of an external issuer has no session.
        deletion.request(user=user, session=None, now=now())
    assert User.objects.get(pk=user.pk).is_active


def test_pending_work_is_finished_before_the_erasure(profile: Profile, stripe: FakeBilling) -> None:
    row = request_deletion(profile)
    user, head = row.user, 7
    entries.grant(user=user, credits=100, source=EntrySource.SURVEYS, key=secrets.token_hex(8))
    held = place_hold(user=user, credits=10, key=secrets.token_hex(8), debt_limit=0)

    assert run_due(row).waits_for == "credits are held"
    holds.release(hold_id=held.hold.pk)
    assert "not covered by a root yet" in run_due(row).waits_for
    close_roots()
    relayed(user, 1)
    RelayTransaction.objects.filter(user=user).update(status="Submitted", settled_at=None)
    assert "a relay call is in progress" in run_due(row).waits_for
    RelayTransaction.objects.filter(user=user).update(status="Success", settled_at=now())
    close_roots()
    call = RelayTransaction.objects.get(user=user)
    make(
        Attempt,
        is_mined=True,
        relay_transaction=call,
        transaction_hash=call.transaction_hash,
        block_number=head,
    )
    assert "not final" in run_due(row).waits_for
    FinalBlock.objects.create(number=head, block_hash="0x" + "ab" * 32)
    # A request that was under way when the account was closed may still make a customer.
    assert run_due(row, minutes=1).status == _Status.BILLING_ENDED
    Payer(stripe, user).with_card()
    deletion.erase_due(now=now() + timedelta(hours=1))
    row.refresh_from_db()
    assert row.waits_for == "a customer is left at Stripe"
    assert run_due(row).status == _Status.ERASED
    assert User.objects.get(pk=user.pk).profile_address is None


def test_a_second_account_gets_no_second_check_in_of_the_day(profile: Profile, stripe: FakeBilling) -> None:
    row = request_deletion(profile)
    noon = row.requested_at.replace(hour=12)
    AccountDeletion.objects.update(requested_at=noon)
    checkins.execute(user=row.user, now=noon)
    close_roots()
    midnight = next_midnight(noon)

    deletion.end_billing(now=midnight)
    assert deletion.erase_due(now=midnight - timedelta(microseconds=1)) == 0
    row.refresh_from_db()
    assert row.waits_for == "the day of a check-in is not over"
    assert deletion.erase_due(now=midnight) == 1


def test_an_outage_of_stripe_does_not_delay_other_erasures(profile: Profile, stripe: FakeBilling) -> None:
    row, other = request_deletion(profile), UserFactory.create()
    Payer(stripe, row.user).with_card()
    AccountDeletion.objects.create(user=other, requested_at=now())

    with stripe.away():
        assert run_due(row).status == _Status.REQUESTED
    assert row.waits_for.startswith("Stripe does not respond.")
    assert AccountDeletion.objects.get(user=other).status == _Status.ERASED
    make(BillingOperation, user=row.user)
    assert run_due(row).waits_for == "A change at Stripe is in progress."
    BillingOperation.objects.filter(status="pending").update(status="done")
    assert run_due(row).status == _Status.ERASED
    assert deletion.erase_due(now=now() + timedelta(days=1)) == 0
