"""The SQL of experience and cashback."""

from credits.queries import period_runs
from gateway.common.statements import Statements
from rewards.models import CREDIT_PARTS


class Sql(Statements, file=__file__, period_runs=period_runs(now="%(now)s"), credit_parts=str(CREDIT_PARTS)):
    open_progress: str
    post_experience: str
    gain_experience: str
    post_changes: str
    add_cashback: str
    cashback_rules: str
