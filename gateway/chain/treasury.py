"""The key that funds relayers. Its policy allows only transfers to relayers, up to a maximum value."""

from collections.abc import Collection
from functools import cache

from coincurve import PrivateKey
from django.conf import settings

from gateway.chain.config import get_chain, on_chain
from gateway.chain.fees import Fees
from gateway.chain.remote_signing import RemoteSigner, remote_signer
from gateway.chain.signing import read_key
from signer.messages import SigningRequest
from signer.policy import TransactionLimits, check_transfer
from signer.transactions import SELF_TRANSFER_GAS, SignedTransaction, UnsignedTransaction, sign_with

# The gas of a transfer to an account without code.
TRANSFER_GAS = SELF_TRANSFER_GAS


class Treasury:
    """Signs with the treasury's key in this process. No repr and no error shows it."""

    def __init__(self, key: str, *, chain_id: int, fee_cap_wei: int, max_value_wei: int) -> None:
        self.address: str
        self._key: PrivateKey
        self.address, self._key = read_key(key, "RELAY_TREASURY_KEY")
        self._limits = TransactionLimits(chain_id=chain_id, fee_cap_wei=fee_cap_wei, max_gas=TRANSFER_GAS)
        self._max_value_wei = max_value_wei

    def __repr__(self) -> str:
        return f"Treasury({self.address})"

    def sign_transfer(
        self, *, to: str, value_wei: int, account_nonce: int, fees: Fees, relayers: Collection[str]
    ) -> SignedTransaction:
        """
        Sign a transfer of `value_wei` to one of `relayers`; the same transfer always gives the same bytes.

        Raises:
            PolicyViolation: the receiver is not a relayer, or the value or the fees are above the maximum.
        """
        transaction = transfer(self._limits.chain_id, to=to, account_nonce=account_nonce, fees=fees)
        check_transfer(
            transaction,
            value_wei=value_wei,
            relayers=relayers,
            limits=self._limits,
            max_value_wei=self._max_value_wei,
        )
        return sign_with(self._key, transaction, value_wei=value_wei)


def transfer(chain_id: int, *, to: str, account_nonce: int, fees: Fees) -> UnsignedTransaction:
    """Return the transaction of a transfer, without its value, which is passed separately."""
    return UnsignedTransaction(
        chain_id=chain_id,
        account_nonce=account_nonce,
        max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
        max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
        gas_limit=TRANSFER_GAS,
        to=to,
        data=b"",
    )


class RemoteTreasury:
    """The treasury of a remote signer, which knows the relayers and enforces its own limits."""

    def __init__(self, address: str, signer: RemoteSigner) -> None:
        self.address, self._signer = address, signer

    def sign_transfer(
        self, *, to: str, value_wei: int, account_nonce: int, fees: Fees, relayers: Collection[str]
    ) -> SignedTransaction:
        """See `Treasury`."""
        transaction = transfer(get_chain().id, to=to, account_nonce=account_nonce, fees=fees)
        return self._signer.sign_request(SigningRequest(self.address, transaction, value_wei))


def get_treasury() -> Treasury | RemoteTreasury | None:
    """
    Return the treasury of this process or of its remote signer; None if neither has the key.

    Raises:
        ImproperlyConfigured: the key cannot be read.
        SignerUnavailable: the signer has not responded yet.
    """
    if settings.RELAY_SIGNER != "remote":
        return _local(get_chain().id)
    signer = remote_signer()
    address = signer.treasury_address()
    return RemoteTreasury(address, signer) if address else None


def forget_treasury() -> None:
    """Forget the key, so that the next use reads it again; for settings that have changed."""
    _local.cache_clear()


@cache
def _local(chain_id: int) -> Treasury | None:
    with on_chain(chain_id):
        chain = get_chain()
    further = settings.CHAINS.get(chain_id)
    key = further.treasury_key if further else settings.RELAY_TREASURY_KEY
    if not key:
        return None
    return Treasury(
        key,
        chain_id=chain.id,
        fee_cap_wei=chain.fees.cap_wei,
        max_value_wei=chain.funding.to_wei,
    )
