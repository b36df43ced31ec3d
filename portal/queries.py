"""Sponsors' spend by contract, read from the payloads of the calls that they paid for."""

from datetime import datetime
from typing import NamedTuple

from gateway.common import db
from gateway.common.fields import checksum
from gateway.common.statements import Statements
from sponsors.models import Sponsor

# The number of contracts to list, those with the highest spend.
MOST_CONTRACTS = 100


class _Sql(Statements, file=__file__):
    contracts: str


class SpentOnContract(NamedTuple):
    """Credits and calls of a contract's address, or of `batch`, `profile` and `deployment`."""

    contract: str
    credits: int
    calls: int


def contracts_of(sponsor: Sponsor, *, since: datetime) -> list[SpentOnContract]:
    """Return the spend for calls accepted since a time, by the contract that each calls first, highest first."""
    params = {"sponsor": sponsor.pk, "since": since, "limit": MOST_CONTRACTS}
    rows = [SpentOnContract(*row) for row in db.all_rows(_Sql.contracts, params)]
    return [
        row._replace(contract=checksum(row.contract)) if row.contract.startswith("0x") else row
        for row in rows
    ]
