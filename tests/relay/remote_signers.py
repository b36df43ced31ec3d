"""A signer elsewhere with the keys of the settings, before which the relay's own tests can be run."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from django.conf import settings as django_settings
from pytest_django import Settings

from devstack.services.stack import Services
from gateway.chain.remote_signing import RemoteSigner, remote_signer
from gateway.chain.signing import set_signer
from gateway.chain.treasury import forget_treasury
from signer.chains import Policy, ServedChain
from signer.journal import Journal
from signer.keys import Keyring, MemoryKey
from signer.policy import DeploymentLimits, TransactionLimits
from signer.service import SigningService
from signer.targets import NodeTargets, Targets
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
        self.further: list[ServedChain] = []
        self.keys = Keyring.of(keys, [], MemoryKey(bytes.fromhex(treasury_key[2:])))
        self.service = self._started()

    def _started(self) -> SigningService:
        chains = [ServedChain(self.policy, self.targets), *self.further]
        return SigningService(self.keys, chains, Journal(str(self._folder / "journal")))

    def also_on(self, chain_id: int, targets: Targets) -> None:
        """Sign for another chain too, after the next restart."""
        limits = TransactionLimits(chain_id, fee_cap_wei=10**11, max_gas=self.policy.limits.max_gas)
        self.further.append(ServedChain(replace(self.policy, limits=limits), targets))

    def allow(self, policy: Policy) -> None:
        """Change the policy of home in the running signer."""
        home = policy.limits.chain_id
        self.service._chains[home] = ServedChain(policy, self.targets)
        self.service._spending[home]._policy = policy

    @contextmanager
    def restarted(self, keys: Keyring | None = None) -> Iterator[None]:
        """Serve, perhaps with other keys, on the same journal, as after a restart."""
        self.service.journal.close()
        self.keys = keys or self.keys
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
