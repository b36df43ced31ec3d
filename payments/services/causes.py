"""The entries that payouts and clawbacks have caused, and the rule of payout rates, for the nightly comparison."""

from gateway.common.statements import Statements
from gateway.staff import approvals


class Sql(Statements, file=__file__, carried_out=approvals.Sql.carried_out):
    caused: str
    rules: str
