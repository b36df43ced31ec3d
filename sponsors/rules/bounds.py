"""Limits on how much, and how often, a policy pays: per call, voucher, user and time window, and in total."""

from datetime import datetime

from sponsors import errors
from sponsors.rules.policies import DAY_SECONDS, OF_PROFILES, Profiles, period_of
from sponsors.rules.refusals import Case, Refusal


def _call(case: Case) -> Refusal | None:
    of_call = case._replace(part=case.part - case.version.first_credits)
    return _bounded(of_call, errors.CallLimit, "a call", case.version.limits.call, used=0)


def _voucher(case: Case) -> Refusal | None:
    voucher = case.facts.voucher
    if case.version.profiles is not Profiles.VOUCHED or voucher is None:
        return None
    return _bounded(case, errors.VoucherLimit, "this voucher", voucher.maximum_credits, used=0)


def _user_calls(case: Case) -> Refusal | None:
    limit, used = case.version.limits.user_calls, case.usage.user_calls
    return _counted(errors.UserCallsLimit, "calls per profile", limit, used=used)


def _user_total(case: Case) -> Refusal | None:
    limit = case.version.limits.user_total
    return _bounded(case, errors.UserTotalLimit, "a profile", limit, used=case.usage.user_total)


def _user_day(case: Case) -> Refusal | None:
    resets = period_of(case.facts.now, seconds=DAY_SECONDS).end
    limit, used = case.version.limits.user_day, case.usage.user_day
    return _bounded(case, errors.UserDayLimit, "a profile a day", limit, used=used, resets=resets)


def _window(case: Case) -> Refusal | None:
    limit, seconds = case.version.limits.window, case.version.limits.window_seconds
    if seconds is None:
        return None
    resets = period_of(case.facts.now, seconds=seconds).end
    subject = f"all profiles in {seconds} seconds"
    return _bounded(case, errors.WindowLimit, subject, limit, used=case.usage.window, resets=resets)


def _window_calls(case: Case) -> Refusal | None:
    limit, seconds = case.version.limits.window_calls, case.version.limits.window_seconds
    if seconds is None:
        return None
    resets = period_of(case.facts.now, seconds=seconds).end
    subject = f"{_things(case)} in {seconds} seconds"
    return _counted(errors.WindowCallsLimit, subject, limit, used=case.usage.window_calls, resets=resets)


def _campaign_calls(case: Case) -> Refusal | None:
    limit, used = case.version.limits.campaign_calls, case.usage.campaign_calls
    return _counted(errors.CampaignCallsLimit, f"{_things(case)} in all", limit, used=used)


def _things(case: Case) -> str:
    return "new profiles" if case.version.purpose in OF_PROFILES else "calls"


def _counted(
    error: type[errors.PolicyRefused],
    subject: str,
    limit: int | None,
    *,
    used: int,
    resets: datetime | None = None,
) -> Refusal | None:
    """Return the refusal if the number is used up."""
    if limit is None or used < limit:
        return None
    return Refusal(
        error=error,
        detail=f"The policy pays for {limit} {subject} and has paid for {used}.",
        limit=limit,
        used=used,
        resets=resets,
        fits=0,
    )


def _campaign(case: Case) -> Refusal | None:
    limit = case.version.limits.campaign
    return _bounded(case, errors.CampaignLimit, "all calls", limit, used=case.usage.campaign)


def _bounded(
    case: Case,
    error: type[errors.PolicyRefused],
    subject: str,
    limit: int | None,
    *,
    used: int,
    resets: datetime | None = None,
) -> Refusal | None:
    """Return the refusal if the credits used and the sponsor's part together exceed the limit."""
    if limit is None or used + case.part <= limit:
        return None
    left = max(0, limit - used)
    return Refusal(
        error=error,
        detail=f"The policy pays {limit} credits for {subject}; {left} are left, and {case.part} are needed.",
        limit=limit,
        used=used,
        resets=resets,
        fits=left,
    )


# In the order of checking: permanent limits first, those that reset soonest last.
BOUNDS = (
    *(_call, _voucher, _user_calls, _user_total, _user_day),
    *(_window, _campaign, _window_calls, _campaign_calls),
)
