"""
The rules that ask beyond the rows: the chain.

They come last, so that only a call which fits otherwise costs a question. Without the answer a rule returns its
question, and the call is decided again with the answer.
"""

from sponsors import errors
from sponsors.rules.policies import Holding, Profiles
from sponsors.rules.refusals import Case, Refusal

Question = Holding


def _holding(case: Case) -> Refusal | Question | None:
    holding = case.version.holding
    if holding is None:
        return None
    if holding not in case.facts.holdings:
        return holding
    holds = case.facts.holdings[holding]
    if holds is None:
        return Refusal(error=errors.HoldingUnknown, detail="The chain cannot be read at the moment.")
    return None if holds else _refusal(holding)


def _refusal(holding: Holding) -> Refusal:
    if holding.rule is Profiles.HOLDING:
        # Balances exceed what a JSON number holds exactly, so they are text.
        least = str(holding.minimum)
        detail = f"The policy pays for profiles with a balance of at least {least} of {holding.counterpart}."
        return Refusal(error=errors.NotHolding, detail=detail, limit=least, fits=holding.counterpart)
    relation = "that follow" if holding.rule is Profiles.FOLLOWER else "followed by"
    detail = f"The policy pays for profiles {relation} {holding.counterpart}."
    return Refusal(error=errors.NotHolding, detail=detail, fits=holding.counterpart)


OUTSIDE = (_holding,)
