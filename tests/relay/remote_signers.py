"""A signer elsewhere with the keys of the settings, before which the relay's own tests can be run."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from django.conf import settings as django_settings
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.chain.remote_signing import RemoteSigner, remote_signer
from gateway.chain.signing import set_signer
from gateway.chain.treasury import forget_treasury
from signer.journal import Journal
from signer.keys import Keyring, MemoryKey
from signer.policy import DeploymentLimits, TransactionLimits
from signer.service import Policy, SigningService
from signer.targets import NodeTargets
from tests.signer.parts import serving

_PATIENCE_SECONDS = 60.0


class RemoteSigners:
    """One with the relayers' keys and a treasury of its own."""

    def __init__(self, services: Services, folder: Path, *, treasury_key: str) -> None:
        self._folder = folder
        keys = [MemoryKey(bytes.fromhex(key[2:])) for key in django_settings.RELAY_RELAYER_KEYS]
        implementations = services.world.implementations
        self.targets = NodeTargets(
            services.rpc_url,
            chain_id=django_settings.CHAIN_ID,
            key_managers=[implementations.key_manager],
            profiles=[implementations.universal_profile],
            timeout_seconds=60,
        )
        self.policy = Policy(
            TransactionLimits(
                django_settings.CHAIN_ID,
                django_settings.RELAY_FEE_CAP_WEI,
                max_gas=django_settings.RELAY_MAX_GAS,
            ),
            gas_per_hour=10**12,
            max_gas_untrusted=django_settings.RELAY_MAX_GAS_UNTRUSTED,
            transfer_wei=10**18,
            transfers_per_day_wei=10**19,
            deploys=DeploymentLimits(max_gas=django_settings.RELAY_DEPLOYMENT_MAX_GAS),
            deployment_gas_per_day=10**12,
        )
        self.keys = Keyring.of(keys, [], MemoryKey(bytes.fromhex(treasury_key[2:])))
        self.service = self._started()

    def _started(self) -> SigningService:
        return SigningService(self.keys, self.policy, Journal(str(self._folder / "journal")), self.targets)

    @contextmanager
    def restarted(self, keys: Keyring) -> Iterator[None]:
        """Serve with other keys on the same journal, as after a restart."""
        self.service.journal.close()
        self.keys = keys
        self.service = self._started()
        with self.serving():
            # As in a process that has no connection to the old one, and has not cached its addresses.
            remote_signer.cache_clear()
            yield

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Respond at the socket."""
        with serving(self._folder, self.service):
            yield

    @property
    def url(self) -> str:
        return f"unix://{self._folder / 'signer.sock'}"


@contextmanager
def remote_signing(services: Services, folder: Path, settings: Settings) -> Iterator[RemoteSigners]:
    """Let this process sign by a signer at a socket, which does not respond yet."""
    signers = RemoteSigners(services, folder, treasury_key="0x" + secrets.token_hex(32))
    settings.RELAY_SIGNER, settings.SIGNER_URL = "remote", signers.url
    set_signer(None)
    forget_treasury()
    settings.SIGNER_TIMEOUT_SECONDS = _PATIENCE_SECONDS
    # Tests let it be silent and respond within the same moment, and it is not away because the machine is busy.
    with (
        patch.object(RemoteSigner, "pause_seconds", 0.0),
        patch.object(RemoteSigner, "health_seconds", _PATIENCE_SECONDS),
    ):
        yield signers
    settings.RELAY_SIGNER = "local"
    set_signer(None)
    forget_treasury()
