"""
Calls that wait for their block for good, so that staff see what that looks like.

They are signed for account nonces after a missing one, which a node keeps and never
mines. The relayer has retired: its key is not among the service's. So they offer the
most that the service ever pays, or it would try to sign them again when gas prices rise.
"""

from datetime import datetime, timedelta

from eth_account import Account

from devstack.population.calling import GWEI, accept
from devstack.population.life import Life
from devstack.rpc import Rpc
from devstack.world.abi import calldata
from gateway.chain.config import get_chain
from relay.models import Attempt, RelayTransaction

_GAS, _WEI = 180_000, 10**20
_EXECUTE = "executeRelayCall(bytes,uint256,uint256,bytes)"


def leave_waiting(lives: list[Life], *, key: str, rpc_url: str, now: datetime) -> None:
    """Hand in one call for each life, and put the chain's count of the relayer one before them."""
    town = lives[0].town
    missing = town.next_account_nonce()
    rpc = Rpc(rpc_url)
    rpc.call("anvil_setBalance", town.relayer.address, hex(_WEI))
    rpc.call("anvil_setNonce", town.relayer.address, hex(missing))
    for place, life in enumerate(lives):
        at = now - timedelta(minutes=3 * place + 1)
        accepted = accept(life, at, gas=_GAS, price=GWEI)
        if accepted is None:
            continue
        attempt = _signed(accepted.row, account_nonce=accepted.account_nonce, key=key, at=at)
        accepted.row.transaction_hash = attempt.transaction_hash
        accepted.row.status = RelayTransaction.Status.SUBMITTED
        life.rows.append(attempt)
    town.relayer.mined_account_nonce = missing
    town.relayer.next_account_nonce = town.account_nonce
    town.relayer.balance_wei = _WEI
    town.relayer.save()


def _signed(row: RelayTransaction, *, account_nonce: int, key: str, at: datetime) -> Attempt:
    data = calldata(_EXECUTE, bytes(row.signature), row.relay_nonce, row.validity, bytes(row.payload))
    signed = Account.sign_transaction(
        {
            "type": 2,
            "chainId": get_chain().id,
            "nonce": account_nonce,
            "to": row.key_manager_address,
            "value": 0,
            "data": data,
            "gas": row.gas_limit,
            "maxFeePerGas": get_chain().fees.cap_wei,
            "maxPriorityFeePerGas": GWEI,
        },
        key,
    )
    return Attempt(
        relay_transaction=row,
        relayer=row.relayer,
        account_nonce=account_nonce,
        status=Attempt.Status.SENT,
        transaction_hash=signed.hash.to_0x_hex(),
        raw=bytes(signed.raw_transaction),
        gas_limit=row.gas_limit,
        max_fee_per_gas_wei=get_chain().fees.cap_wei,
        max_priority_fee_per_gas_wei=GWEI,
        created_at=at,
        first_sent_at=at,
        sent_at=at,
    )
