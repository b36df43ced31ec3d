"""The SQL that moves credits is only in the statements of this module and in `credits/functions.sql`."""

from gateway.common.statements import Statements


class Sql(Statements, file=__file__):
    open_accounts: str
    post_entry: str
    post_to_sponsor: str
    set_allowance: str
    close_holds: str
    reopen_holds: str
    post_entries: str
    expire: str
    take_over_debt: str
