"""The entries that cashback has caused, and the rules of its amounts, for the nightly comparison."""

from gateway.common.statements import Statements
from rewards.models import CREDIT_PARTS


class Sql(Statements, file=__file__, credit_parts=str(CREDIT_PARTS)):
    caused: str
    rules: str
