"""Sponsors' spend by contract, read from the payloads of the calls that they paid for."""

from datetime import datetime
from typing import NamedTuple

from gateway.common import db
from gateway.common.fields import checksum
from sponsors.models import Sponsor

# The number of contracts to list, those with the highest spend.
MOST_CONTRACTS = 100


class SpentOnContract(NamedTuple):
    """Credits and calls of a contract's address, or of `batch`, `profile` and `deployment`."""

    contract: str
    credits: int
    calls: int


def contracts_of(sponsor: Sponsor, *, since: datetime) -> list[SpentOnContract]:
    """Return the spend for calls accepted since a time, by the contract that each calls first, highest first."""
    params = {"sponsor": sponsor.pk, "since": since, "limit": MOST_CONTRACTS}
    rows = [SpentOnContract(*row) for row in db.all_rows(_CONTRACTS, params)]
    return [
        row._replace(contract=checksum(row.contract)) if row.contract.startswith("0x") else row
        for row in rows
    ]


# In `execute(uint256 operation, address target, …)`, this reads the last byte of the operation and the last 20 bytes of
# the target. Operations 1 and 2 create a contract. `executeBatch(uint256[],…)` is a batch; any other function is the
# profile's own.
_CONTRACTS = """
SELECT CASE WHEN substring(call.payload FOR 4) = '\\x31858452' THEN 'batch'
            WHEN substring(call.payload FOR 4) <> '\\x44c028fe' OR octet_length(call.payload) < 68 THEN 'profile'
            WHEN get_byte(call.payload, 35) IN (1, 2) THEN 'deployment'
            ELSE '0x' || encode(substring(call.payload FROM 49 FOR 20), 'hex') END AS contract,
       sum(sponsored.counted_credits)::bigint AS credits, sum(sponsored.counted_calls)::bigint AS calls
FROM sponsors_policy AS policy
JOIN sponsors_policyversion AS version ON version.policy_id = policy.id
JOIN sponsors_sponsoredcall AS sponsored ON sponsored.version_id = version.id AND sponsored.accepted_at >= %(since)s
JOIN relay_relaytransaction AS call ON call.hold_id = sponsored.hold_id
WHERE policy.sponsor_id = %(sponsor)s
GROUP BY 1 ORDER BY credits DESC, contract LIMIT %(limit)s
"""
