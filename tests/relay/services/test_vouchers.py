"""A policy for vouched profiles pays for one call with each of the sponsor's vouchers, and for nothing without."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from eth_account import Account

from credits.models import CreditHold
from devstack.services.stack import Services
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from gateway.common.errors import DomainError
from relay.models import Relayer, RelayTransaction
from relay.services.accepting import preparation, submission
from relay.services.accepting.preparation import Draft
from sponsors.errors import UserCallsLimit, VoucherMissing, VoucherRefused, VoucherUsed
from sponsors.models import SponsoredCall, UsedVoucher, VoucherSigner
from sponsors.rules.vouchers import SignedVoucher, Voucher, typed_data
from sponsors.services import signers
from sponsors.services.paying import SponsorChoice
from tests.factories import random_address
from tests.relay.conftest import Refused
from tests.relay.quoting import caller_of
from tests.relay.signing import set_data_payload, sign_digest
from tests.sponsors.sponsorships import make_policy, make_sponsor
from tests.threads import at_once
from users.models import User


class Issuer:
    """A sponsor's server, which signs vouchers for one policy."""

    def __init__(self, services: Services, **terms: Any) -> None:
        self.chain_id = services.chain_id
        self.sponsor = make_sponsor()
        self.version = make_policy(self.sponsor, **{"profiles": "vouched", **terms})
        self.key = Account.create()
        VoucherSigner.objects.create(sponsor=self.sponsor, address=self.key.address)

    def voucher(self, profile: str, *, key: Any = None, maximum_credits: int = 10**6) -> SignedVoucher:
        """Return a new voucher for the profile, good for a minute."""
        voucher = Voucher(
            sponsor=self.sponsor.slug,
            policy=self.version.policy.name,
            profile=profile,
            voucher_id=secrets.token_bytes(32),
            deadline=int(timezone.now().timestamp()) + 60,
            maximum_credits=maximum_credits,
        )
        signed = (key or self.key).sign_message(typed_data(voucher, chain_id=self.chain_id))
        return SignedVoucher(voucher, bytes(signed.signature))

    def choice(self, voucher: SignedVoucher | None, **values: Any) -> SponsorChoice:
        """Return the choice of this sponsor with a voucher."""
        return SponsorChoice(self.sponsor.slug, voucher=voucher, **values)


def execute_vouched(user: User, call: RelayCall, choice: SponsorChoice) -> str:
    """Hand in a call with this choice; return the hash."""
    return submission.execute(caller=caller_of(user), call=call, now=timezone.now(), sponsor=choice)


@pytest.fixture
def newcomer(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit."""
    return open_account(profile, 1)


@pytest.mark.django_db
def test_a_newcomers_voucher_pays_for_the_call_and_is_used(
    services: Services, newcomer: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    issuer = Issuer(services)
    voucher = issuer.voucher(str(newcomer.profile_address))
    call = new_call()

    name = execute_vouched(newcomer, call, issuer.choice(voucher))

    row = RelayTransaction.objects.get(transaction_hash=name)
    paid = SponsoredCall.objects.get(hold=row.hold)
    assert (row.hold.amount, paid.sponsor_hold.amount > 0, paid.version) == (0, True, issuer.version)
    used = UsedVoucher.objects.get()
    assert (used.call, used.signer, used.sponsor) == (paid, issuer.key.address, issuer.sponsor)
    assert used.voucher_id == "0x" + voucher.voucher.voucher_id.hex()
    # A repeat of the call gets the same response; another call needs another voucher.
    assert execute_vouched(newcomer, call, issuer.choice(voucher)) == name
    with refused(VoucherUsed):
        execute_vouched(newcomer, new_call(channel=7), issuer.choice(voucher))


@pytest.mark.django_db
def test_without_a_valid_voucher_nothing_is_paid(
    services: Services, newcomer: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    issuer, call, own = Issuer(services), new_call(), str(newcomer.profile_address)

    with refused(VoucherMissing):
        execute_vouched(newcomer, call, issuer.choice(None))
    for voucher in (issuer.voucher(random_address()), issuer.voucher(own, key=Account.create())):
        with refused(VoucherRefused):
            execute_vouched(newcomer, call, issuer.choice(voucher))
    good = issuer.voucher(own)
    signers.remove(VoucherSigner.objects.get())
    with refused(VoucherRefused):
        execute_vouched(newcomer, call, issuer.choice(good))


@pytest.mark.django_db
def test_a_policy_without_vouchers_uses_none(
    services: Services, newcomer: User, new_call: Callable[..., RelayCall]
) -> None:
    issuer = Issuer(services, profiles="all")

    execute_vouched(newcomer, new_call(), issuer.choice(issuer.voucher(str(newcomer.profile_address))))

    assert (SponsoredCall.objects.count(), UsedVoucher.objects.count()) == (1, 0)


@pytest.mark.django_db
def test_an_invalid_voucher_does_not_affect_policies_without_vouchers(
    services: Services, newcomer: User, new_call: Callable[..., RelayCall], refused: Refused
) -> None:
    issuer, own = Issuer(services), str(newcomer.profile_address)
    open_to_all = make_policy(issuer.sponsor, position=1, user_calls=2)
    used = issuer.voucher(own)

    execute_vouched(newcomer, new_call(channel=1), issuer.choice(used))
    execute_vouched(newcomer, new_call(channel=2), issuer.choice(used))
    execute_vouched(newcomer, new_call(channel=3), issuer.choice(issuer.voucher(own, key=Account.create())))

    paid = SponsoredCall.objects.order_by("pk").values_list("version_id", flat=True)
    assert list(paid) == [issuer.version.pk, open_to_all.pk, open_to_all.pk]
    assert UsedVoucher.objects.count() == 1
    # The policy that came closest decides the error, and the other is told beside it.
    with refused(UserCallsLimit) as refusal:
        execute_vouched(newcomer, new_call(channel=4), issuer.choice(used))
    told = refusal.value.members["policies"]
    assert [rule["code"] for rule in told] == ["sponsor-voucher-used", "sponsor-limit-user-calls"]
    assert told[0]["id"] == "0x" + used.voucher.voucher_id.hex()


@pytest.mark.django_db
def test_prepare_and_a_call_without_a_relayer_use_no_voucher(
    services: Services, newcomer: User, profile: Profile, new_call: Callable[..., RelayCall]
) -> None:
    issuer = Issuer(services)
    choice = issuer.choice(issuer.voucher(str(newcomer.profile_address)))
    draft = Draft(set_data_payload(), 0, controller=profile.controller.address, sponsor=choice)

    prepared = preparation.prepare(caller=caller_of(newcomer), draft=draft, now=timezone.now())
    assert prepared.sponsorship is not None
    assert prepared.sponsorship.policy == issuer.version.policy.name
    Relayer.objects.update(is_active=False)
    with pytest.raises(DomainError):
        execute_vouched(newcomer, new_call(), choice)
    assert (UsedVoucher.objects.count(), SponsoredCall.objects.count(), CreditHold.objects.count()) == (
        0,
        0,
        0,
    )

    Relayer.objects.update(is_active=True)
    execute_vouched(newcomer, new_call(), choice)
    assert UsedVoucher.objects.count() == 1


@pytest.mark.django_db
def test_a_quoted_call_sends_its_voucher_again(
    services: Services, newcomer: User, profile: Profile, refused: Refused
) -> None:
    issuer = Issuer(services)
    choice = issuer.choice(issuer.voucher(str(newcomer.profile_address)))
    draft = Draft(set_data_payload(), 0, controller=profile.controller.address, sponsor=choice)
    prepared = preparation.prepare(caller=caller_of(newcomer), draft=draft, now=timezone.now())
    assert prepared.quote is not None
    digest = bytes.fromhex(prepared.identity.digest[2:])
    call = replace(prepared.call, signature=sign_digest(profile.controller.private_key, digest))
    execute = partial(
        submission.execute,
        caller=caller_of(newcomer),
        call=call,
        now=timezone.now(),
        quote_id=prepared.quote.pk,
    )

    with refused(VoucherMissing):
        execute()
    execute(sponsor=choice)

    assert UsedVoucher.objects.get().call.version == issuer.version


@pytest.mark.django_db(transaction=True)
def test_of_16_concurrent_calls_with_one_voucher_one_is_paid(
    services: Services, newcomer: User, new_call: Callable[..., RelayCall]
) -> None:
    issuer = Issuer(services)
    choice = issuer.choice(issuer.voucher(str(newcomer.profile_address)))
    calls = [new_call(channel=secrets.randbits(100)) for _ in range(16)]

    results = at_once([partial(execute_vouched, newcomer, call, choice) for call in calls])

    refusals = [each for each in results if not isinstance(each, str)]
    assert [type(each) for each in refusals] == [VoucherUsed] * 15
    assert (SponsoredCall.objects.count(), UsedVoucher.objects.count(), CreditHold.objects.count()) == (
        1,
        1,
        2,
    )
    issuer.sponsor.credit_account.refresh_from_db()
    assert issuer.sponsor.credit_account.held == SponsoredCall.objects.get().sponsor_hold.amount
