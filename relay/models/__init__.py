"""
The rows of the relay: relay transactions, attempts, relayers, and the worker's state.

Every row has its chain's id, so that one database can serve several chains.
"""

from pathlib import Path

from gateway.common import sql_functions
from gateway.common.statements import literals
from relay.models.attempts import HASH_PART, Attempt, AttemptStatus, LeastTip, UnsignedCall
from relay.models.calls import (
    ACTIVE_SQL,
    CALLERS_DOING,
    COPY_TAKEN,
    DEPLOYED_FIRST,
    IN_PROGRESS_SQL,
    OVERTAKEN,
    PREDECESSOR_FAILED,
    UNCHARGED,
    RelayStatus,
    RelayTransaction,
    ReversedSettlement,
    calldata_of,
    current_chain_id,
    sql_values,
)
from relay.models.creations import ProfileCreation
from relay.models.prices import CreditPrice
from relay.models.relayers import GapFiller, Relayer, TopUp, TopUpStatus, Treasury
from relay.models.worker import FinalBlock, Loss, Quote, WorkerLoop

__all__ = [
    "COPY_TAKEN",
    "DEPLOYED_FIRST",
    "FUNCTIONS",
    "HASH_PART",
    "OVERTAKEN",
    "PREDECESSOR_FAILED",
    "SQL",
    "UNCHARGED",
    "Attempt",
    "AttemptStatus",
    "CreditPrice",
    "FinalBlock",
    "GapFiller",
    "LeastTip",
    "Loss",
    "ProfileCreation",
    "Quote",
    "RelayStatus",
    "RelayTransaction",
    "Relayer",
    "ReversedSettlement",
    "TopUp",
    "TopUpStatus",
    "Treasury",
    "UnsignedCall",
    "WorkerLoop",
    "calldata_of",
    "current_chain_id",
]


# PostgreSQL's timeline id, which increases with each fail-over and point-in-time restore.
TIMELINE = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint"


# What `@name@` stands for in the app's SQL: statuses of calls and attempts by name, and lists of them and of columns.
SQL = {
    **{status.name.lower(): literals(status) for kind in (RelayStatus, AttemptStatus) for status in kind},
    "in_progress": IN_PROGRESS_SQL,
    "active": ACTIVE_SQL,
    "unsuccessful": sql_values(*RelayTransaction.UNSUCCESSFUL),
    "callers_doing": CALLERS_DOING,
    "costless": sql_values(*Attempt.COSTLESS),
    "uncharged": f"({literals(*UNCHARGED)})",
    "call_kind": literals(Attempt.Kind.CALL),
    "timeline": TIMELINE,
    "untrusted": literals(Loss.Kind.UNTRUSTED),
    "extra_fee": literals(Loss.Kind.EXTRA_FEE),
    "call_columns": sql_functions.columns(RelayTransaction),
    "call_defaults": sql_functions.defaults(RelayTransaction),
    "attempt_columns": sql_functions.columns(Attempt, without="relay_transaction_id"),
    "attempt_defaults": sql_functions.defaults(Attempt),
}
# The SQL functions that accept many calls in one statement.
FUNCTIONS = sql_functions.register(Path(__file__).parents[1], SQL)
