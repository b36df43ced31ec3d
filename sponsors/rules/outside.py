"""
The rules that need a response from outside the database: from the chain, or from the sponsor's verifier.

They come last, so that only a call that passes all other rules causes a question. A rule that lacks its response
returns the question; the relay gets the response and decides again.
"""

from sponsors import errors
from sponsors.rules.policies import Holding, Profiles, Question, Verification
from sponsors.rules.refusals import Case, Refusal


def _holding(case: Case) -> Refusal | Question | None:
    holding = case.version.holding
    if holding is None:
        return None
    if holding not in case.facts.responses:
        return holding
    response = case.facts.responses[holding]
    if response is None:
        return Refusal(error=errors.HoldingUnknown, detail="The chain cannot be read at the moment.")
    return None if response.is_yes else _not_holding(holding)


def _not_holding(holding: Holding) -> Refusal:
    if holding.rule is Profiles.HOLDING:
        # Text, because balances exceed the integers that JSON numbers represent exactly.
        least = str(holding.minimum)
        detail = f"The policy pays for profiles with a balance of at least {least} of {holding.counterpart}."
        return Refusal(error=errors.NotHolding, detail=detail, limit=least, fits=holding.counterpart)
    relation = "that follow" if holding.rule is Profiles.FOLLOWER else "followed by"
    detail = f"The policy pays for profiles {relation} {holding.counterpart}."
    return Refusal(error=errors.NotHolding, detail=detail, fits=holding.counterpart)


def _verified(case: Case) -> Refusal | Question | None:
    version = case.version
    if version.profiles is not Profiles.VERIFIED:
        return None
    question = Verification(version.version_id, version.policy, case.part)
    if question not in case.facts.responses:
        return question
    response = case.facts.responses[question]
    if response is None:
        return Refusal(error=errors.VerifierUnknown, detail="The sponsor's verifier gave no valid response.")
    if response.fault:
        detail = f"The sponsor's verifier gave no valid response: {response.fault}."
        return Refusal(error=errors.VerifierUnknown, detail=detail)
    if not response.is_yes:
        return Refusal(error=errors.VerifierRefused, detail="The sponsor's verifier refused this call.")
    most = response.maximum_credits
    if most is None or case.part <= most:
        return None
    detail = f"The sponsor's verifier allows {most} credits for this call; {case.part} are needed."
    return Refusal(error=errors.VerifierLimit, detail=detail, limit=most, used=0, fits=most)


OUTSIDE = (_holding, _verified)
