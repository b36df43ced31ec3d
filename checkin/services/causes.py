"""The entries that check-ins have caused, for the nightly comparison."""

from gateway.common.statements import Statements


class Sql(Statements, file=__file__):
    caused: str
