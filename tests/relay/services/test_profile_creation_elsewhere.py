"""New profiles whose deployments another process signs, and what is left where one of the steps is interrupted."""

from unittest.mock import patch

import pytest

from credits.models import CreditHold
from gateway.chain.errors import SignerUnavailable
from relay.models import Attempt, ProfileCreation, RelayTransaction, UnsignedCall
from relay.services import creations
from relay.services.accepting import unsigned
from signer.client import SignerAway, SignerClient
from sponsors.models import Sponsor
from tests.relay.conftest import Settle
from tests.relay.creating import a_request, create, deployment_of, for_profiles
from tests.relay.remote_signers import RemoteSigners
from tests.relay.sponsoring import account_of, used
from tests.relay.workers import assert_books_agree, later
from tests.sponsors.sponsorships import make_sponsor

pytestmark = pytest.mark.django_db


@pytest.fixture
def sponsor(signers: RemoteSigners, relayers: object, trusted: None) -> Sponsor:
    """A sponsor that pays for new profiles, whose transactions are signed elsewhere."""
    sponsor = make_sponsor()
    for_profiles(sponsor, campaign_calls=1)
    return sponsor


def test_a_signer_elsewhere_signs_the_deployment(sponsor: Sponsor, settle: Settle) -> None:
    row = create(sponsor)
    assert not UnsignedCall.objects.exists()
    assert settle() == 1
    assert deployment_of(row).status == "Success"
    assert_books_agree()


def test_a_request_whose_signer_is_away_is_completed_by_its_repeat(sponsor: Sponsor, settle: Settle) -> None:
    request = a_request()
    with (
        patch.object(SignerClient, "sign", side_effect=SignerAway("as a test wants it")),
        pytest.raises(SignerUnavailable),
    ):
        create(sponsor, request)
    waiting = ProfileCreation.objects.get()
    assert creations.requested(sponsor=sponsor, profile=waiting.profile_address) == [waiting]
    assert not RelayTransaction.objects.exists()

    assert create(sponsor, request) == waiting
    assert settle() == 1
    assert (deployment_of(waiting).status, CreditHold.objects.count()) == ("Success", 2)
    assert_books_agree()


def test_the_worker_completes_a_request_that_its_caller_gave_up(sponsor: Sponsor, settle: Settle) -> None:
    with (
        patch.object(SignerClient, "sign", side_effect=SignerAway("as a test wants it")),
        pytest.raises(SignerUnavailable),
    ):
        create(sponsor)
    assert unsigned.sweep(now=later(10)) == 1
    assert settle() == 1
    assert deployment_of(ProfileCreation.objects.get()).status == "Success"


def test_a_request_that_is_never_signed_gives_back_its_place_and_may_be_repeated(
    sponsor: Sponsor, settle: Settle
) -> None:
    request = a_request()
    with patch.object(SignerClient, "sign", side_effect=SignerAway("as a test wants it")):
        with pytest.raises(SignerUnavailable):
            create(sponsor, request)
        unsigned.sweep(now=later(86_400))
    assert (account_of(sponsor).held, used(sponsor)["campaign"][1], Attempt.objects.count()) == (0, 0, 0)
    row = create(sponsor, request)
    assert settle() == 1
    assert deployment_of(row).status == "Success"
    assert_books_agree()
