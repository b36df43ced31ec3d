"""Calls of a second chain that another process signs, by what it allows on that chain."""

from collections.abc import Callable, Collection

import pytest
from django.utils import timezone

from credits.models import CreditHold
from credits.queries import balance_of
from devstack.world.profiles import Profile
from gateway.chain.config import on_chain
from gateway.chain.errors import SignerUnavailable
from gateway.chain.lsp25 import RelayCall
from relay import checks
from relay.models import RelayTransaction, UnsignedCall
from signer.targets import Trust
from tests.relay.callers import execute
from tests.relay.remote_signers import RemoteSigners
from tests.relay.two_chains import ForeignChain
from tests.relay.workers import broadcast_all, track
from users.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("signers")]


class _Targets:
    """The key managers of copies, which are trusted on their chain."""

    def __init__(self, *trusted: str) -> None:
        self._trusted = trusted

    def trust_of(self, addresses: Collection[str]) -> dict[str, Trust]:
        """See `Targets`."""
        return {name: Trust.TRUSTED if name in self._trusted else Trust.NONE for name in addresses}

    def used_nonces(self, addresses: Collection[str]) -> dict[str, int]:
        """See `Targets`."""
        return dict.fromkeys(addresses, 0)


def test_a_signer_that_knows_the_chain_signs_its_calls_as_those_of_home(
    user: User,
    profile: Profile,
    foreign: ForeignChain,
    signers: RemoteSigners,
    new_call: Callable[..., RelayCall],
    settle: Callable[[], int],
) -> None:
    signers.also_on(foreign.id, _Targets(profile.key_manager_address))
    with signers.restarted():
        assert checks.chains_of_the_signer() == []
        execute(user=user, call=new_call(), now=timezone.now())
        with on_chain(foreign.id):
            signed = execute(user=user, call=foreign.sign(profile), now=timezone.now())
            broadcast_all()
            foreign.mine(2)
            assert track() == 1
        assert settle() == 1
    row = RelayTransaction.objects.get(chain_id=foreign.id)
    assert (row.transaction_hash, row.status) == (signed, "Success")
    # No transaction came before on either chain.
    assert signers.service.counts == {"signed": 2}
    assert not UnsignedCall.objects.exists()


def test_a_signer_without_the_chain_signs_nothing_and_the_check_names_the_chain(
    user: User, profile: Profile, foreign: ForeignChain, signers: RemoteSigners
) -> None:
    before = balance_of(user)
    [error] = checks.chains_of_the_signer()
    assert (error.id, f"does not sign for chain {foreign.id}." in error.msg) == ("relay.E008", True)
    with on_chain(foreign.id), pytest.raises(SignerUnavailable):
        execute(user=user, call=foreign.sign(profile), now=timezone.now())
    assert (signers.service.signed_ever(), signers.service.counts) == (0, {"policy": 1})
    assert balance_of(user) == before
    assert not any(model.objects.exists() for model in (RelayTransaction, UnsignedCall, CreditHold))
