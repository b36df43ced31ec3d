"""The operator's default sponsor pays only for users without credits, within its policies."""

import secrets
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import IntegrityError
from django.utils import timezone

from credits.errors import InsufficientCredits
from credits.queries import balance_of
from devstack.world.profiles import Profile
from gateway.chain.lsp25 import RelayCall
from relay.services.accepting import preparation, submission
from relay.services.accepting.preparation import Draft, PreparedCall
from sponsors.models import Sponsor, SponsoredCall
from sponsors.services import policies
from tests.relay.callers import execute
from tests.relay.conftest import Refused
from tests.relay.quoting import caller_of
from tests.relay.signing import set_data_payload, sign_digest
from tests.relay.sponsoring import execute_sponsored, hold_of, row_of
from tests.sponsors.sponsorships import make_policy, make_sponsor
from users.models import User

pytestmark = pytest.mark.django_db
NewCall = Callable[..., RelayCall]


@pytest.fixture
def newcomer(profile: Profile, open_account: Callable[..., User]) -> User:
    """The owner of the profile, with a single credit."""
    return open_account(profile, 1)


@pytest.fixture
def default() -> Sponsor:
    """The operator's default sponsor, with a policy that pays for everything."""
    sponsor = make_sponsor()
    policies.make_default(sponsor, is_default=True)
    return sponsor


def run(user: User, call: RelayCall) -> str:
    return execute(user=user, call=call, now=timezone.now())


def prepare(user: User, profile: Profile) -> PreparedCall:
    draft = Draft(set_data_payload(), secrets.randbits(100), controller=profile.controller.address)
    return preparation.prepare(caller=caller_of(user), draft=draft, now=timezone.now())


def test_a_call_that_its_user_cannot_pay_is_paid_by_the_default_sponsor(
    newcomer: User, new_call: NewCall, default: Sponsor
) -> None:
    version, call = make_policy(default), new_call()
    row = row_of(run(newcomer, call))
    assert (row.hold.amount, hold_of(row).amount > 0) == (0, True)
    assert SponsoredCall.objects.get().version == version
    assert balance_of(newcomer) == (1, 0, 1)
    assert run(newcomer, call) == row.transaction_hash


def test_a_user_with_credits_pays_without_the_default_sponsor(
    user: User, new_call: NewCall, default: Sponsor
) -> None:
    make_policy(default)
    row = row_of(run(user, new_call()))
    assert row.hold.amount > 0
    assert not SponsoredCall.objects.exists()


@pytest.mark.parametrize(
    "why", ["no policy", "a limit", "frozen", "no default", "half a share", "without credits"]
)
def test_if_the_default_sponsor_does_not_pay_the_response_concerns_the_user(
    newcomer: User, new_call: NewCall, refused: Refused, why: str
) -> None:
    sponsor = make_sponsor(0 if why == "without credits" else 100_000)
    policies.make_default(sponsor, is_default=True)
    if why != "no policy":
        make_policy(sponsor, call_credits=1 if why == "a limit" else 10_000,
                    share_percent=50 if why == "half a share" else 100)  # fmt: skip
    if why == "frozen":
        policies.freeze(sponsor, is_frozen=True)
    if why == "no default":
        policies.make_default(sponsor, is_default=False)
    call = new_call()
    with refused(InsufficientCredits) as refusal:
        run(newcomer, call)
    Sponsor.objects.update(is_default=False)
    with refused(InsufficientCredits) as own:
        run(newcomer, call)
    assert (refusal.value.members, refusal.value.detail) == (own.value.members, own.value.detail)


def test_a_call_that_names_a_sponsor_gets_that_sponsors_error(
    newcomer: User, new_call: NewCall, default: Sponsor
) -> None:
    make_policy(default)
    other = make_sponsor()
    paid = make_policy(other)
    execute_sponsored(newcomer, new_call(), other)
    assert SponsoredCall.objects.get().version == paid


def test_prepare_shows_the_default_sponsor_and_its_quote_binds_it(
    newcomer: User, profile: Profile, default: Sponsor
) -> None:
    assert [refusal.code for refusal in prepare(newcomer, profile).refusals] == ["insufficient-credits"]
    version = make_policy(default)
    prepared = prepare(newcomer, profile)
    assert (prepared.refusals, prepared.sponsor_refusal) == ((), None)
    assert prepared.sponsorship is not None
    assert prepared.sponsorship.sponsor == default.slug
    assert prepared.quote is not None
    policies.make_default(default, is_default=False)

    digest = bytes.fromhex(prepared.identity.digest[2:])
    call = replace(prepared.call, signature=sign_digest(profile.controller.private_key, digest))
    submission.execute(caller=caller_of(newcomer), call=call, now=timezone.now(), quote_id=prepared.quote.pk)
    assert SponsoredCall.objects.get().version == version


def test_there_is_one_default_at_most(default: Sponsor) -> None:
    other = make_sponsor()
    policies.make_default(other, is_default=True)
    assert Sponsor.objects.get(is_default=True) == other
    with pytest.raises(IntegrityError):
        Sponsor.objects.filter(pk=default.pk).update(is_default=True)
