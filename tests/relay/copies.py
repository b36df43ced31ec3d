"""Profiles at home that are made as a wallet makes them, and their copies on other chains."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from devstack.services.stack import Services
from devstack.world.deployer import Call
from gateway.chain import lsp23
from gateway.chain.config import on_chain
from relay.services import copying
from relay.services.accepting.calls import Caller
from relay.services.copying import Copy, FirstDeployment
from signer import deployments
from signer.deployments import Deployment, addresses_of
from tests.relay.creating import a_key, address_of
from users.models import User

Own = Callable[[Deployment], User]


@dataclass(frozen=True)
class _Named:
    profile_address: str


def a_deployment(*private_keys: str) -> Deployment:
    """Return the deployment of a profile with the controllers of these keys."""
    controllers = [address_of(key) for key in private_keys or (a_key(),)]
    new = lsp23.profile_of_controllers(controllers=controllers, metadata=b"", salt=secrets.token_bytes(32))
    return new.deployment


def sent(deployment: Deployment) -> FirstDeployment:
    """Return the data of the first deployment as a wallet sends them."""
    return FirstDeployment(deployment.salt, deployment.module_data)


def owning(services: Services, open_account: Callable[..., User]) -> Own:
    """Return what deploys a profile at home, as a wallet does, and makes its owner, who has credits."""

    def make(deployment: Deployment) -> User:
        services.world.deployer.send([Call(deployments.FACTORY, deployments.encode(deployment))])
        return open_account(_Named(addresses_of(deployment).profile))

    return make


def copy(user: User, first: FirstDeployment | None, chain_id: int) -> Copy:
    """Ask for the copy of the user's profile on this chain now."""
    with on_chain(chain_id):
        return copying.copy(
            caller=Caller(user.pk, str(user.profile_address)), first=first, now=timezone.now()
        )
