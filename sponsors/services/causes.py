"""First credits, and the rules of sponsors' terms, usage, vouchers and members, for the nightly comparison."""

from gateway.common.statements import Statements
from gateway.staff import approvals


class Sql(Statements, file=__file__, carried_out=approvals.Sql.carried_out):
    caused: str
    rules: str
