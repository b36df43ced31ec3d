"""The key that funds relayers, and its own policy: it signs nothing but transfers of a bounded value to them."""

from collections.abc import Collection
from functools import cache

from coincurve import PrivateKey
from django.conf import settings

from gateway.chain.config import get_chain
from gateway.chain.fees import Fees
from gateway.chain.signing import (
    SELF_TRANSFER_GAS,
    PolicyViolation,
    SignedTransaction,
    UnsignedTransaction,
    read_key,
    sign_with,
)

# What a transfer to an account without code costs.
TRANSFER_GAS = SELF_TRANSFER_GAS


class Treasury:
    """Holds the treasury's key. No text ever shows it."""

    def __init__(self, key: str, *, chain_id: int, fee_cap_wei: int, max_value_wei: int) -> None:
        self.address: str
        self._key: PrivateKey
        self.address, self._key = read_key(key, "RELAY_TREASURY_KEY")
        self._chain_id, self._fee_cap_wei, self._max_value_wei = chain_id, fee_cap_wei, max_value_wei

    def __repr__(self) -> str:
        return f"Treasury({self.address})"

    def sign_transfer(
        self, *, to: str, value_wei: int, account_nonce: int, fees: Fees, relayers: Collection[str]
    ) -> SignedTransaction:
        """
        Sign a transfer of `value_wei` to one of `relayers`; the same transfer always gives the same bytes.

        Raises:
            PolicyViolation: another receiver, more than the most of one transfer, or fees above the cap.
        """
        if to not in relayers:
            raise PolicyViolation("the treasury pays relayers alone")
        if not 0 < value_wei <= self._max_value_wei:
            raise PolicyViolation("more than one transfer may carry")
        if not 0 <= fees.max_priority_fee_per_gas_wei <= fees.max_fee_per_gas_wei <= self._fee_cap_wei:
            raise PolicyViolation("fees above the cap, or a tip above the fee")
        transaction = UnsignedTransaction(
            chain_id=self._chain_id,
            account_nonce=account_nonce,
            max_priority_fee_per_gas_wei=fees.max_priority_fee_per_gas_wei,
            max_fee_per_gas_wei=fees.max_fee_per_gas_wei,
            gas_limit=TRANSFER_GAS,
            to=to,
            data=b"",
        )
        return sign_with(self._key, transaction, value_wei=value_wei)


@cache
def get_treasury() -> Treasury | None:
    """
    Return the treasury of `settings.RELAY_TREASURY_KEY`, made once; None in a process without the key.

    Raises:
        ImproperlyConfigured: the key cannot be read.
    """
    if not settings.RELAY_TREASURY_KEY:
        return None
    chain = get_chain()
    return Treasury(
        settings.RELAY_TREASURY_KEY,
        chain_id=chain.id,
        fee_cap_wei=chain.fees.cap_wei,
        max_value_wei=settings.RELAY_TOP_UP_TO_WEI,
    )
