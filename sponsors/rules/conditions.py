"""Conditions for a policy to pay for a call: times, targets, profiles, vouchers and gas prices."""

from sponsors import errors
from sponsors.rules.calls import PROFILE
from sponsors.rules.policies import Profiles, Purpose
from sponsors.rules.refusals import Case, Refusal

_PAID = {
    Purpose.CALLS: "calls",
    Purpose.PROFILES: "new profiles",
    Purpose.WELCOME: "new profiles that their sponsors do not pay for",
}


def _purpose(case: Case) -> Refusal | None:
    if case.version.purpose is case.facts.purpose:
        return None
    paid = _PAID[case.version.purpose]
    return Refusal(
        error=errors.PurposeNotSponsored,
        detail=f"The policy pays for {paid} only.",
        limit=case.version.purpose.value,
    )


def _chain(case: Case) -> Refusal | None:
    if case.version.chain_id == case.facts.chain_id:
        return None
    return Refusal(
        error=errors.ChainNotSponsored,
        detail=f"The policy pays on chain {case.version.chain_id}; the call is for chain {case.facts.chain_id}.",
        limit=case.version.chain_id,
        fits=case.version.chain_id,
    )


def _begun(case: Case) -> Refusal | None:
    if case.version.starts_at is None or case.facts.now >= case.version.starts_at:
        return None
    return Refusal(
        error=errors.SponsoringNotStarted,
        detail=f"The policy does not pay before {case.version.starts_at:%Y-%m-%d %H:%M} UTC.",
        resets=case.version.starts_at,
    )


def _running(case: Case) -> Refusal | None:
    if case.version.ends_at is None or case.facts.now < case.version.ends_at:
        return None
    return Refusal(
        error=errors.SponsoringEnded,
        detail=f"The policy paid until {case.version.ends_at:%Y-%m-%d %H:%M} UTC.",
        limit=case.version.ends_at.isoformat(),
    )


def _readable(case: Case) -> Refusal | None:
    if not case.version.targets or case.facts.actions is not None:
        return None
    return Refusal(error=errors.PayloadUnreadable, detail="Part of the payload does not decode.")


def _targets(case: Case) -> Refusal | None:
    targets = case.version.targets
    if not targets:
        return None
    for action in case.facts.actions or ():
        if not any(target.allows(action) for target in targets):
            contract = "the profile itself" if action.contract == PROFILE else action.contract
            function = f"function {_hex(action.function)}" if action.function else "a transfer of LYX"
            return Refusal(
                error=errors.TargetNotSponsored,
                detail=f"The policy does not pay for {function} of {contract}.",
                fits=[
                    {"contract": each.contract, "functions": sorted(map(_hex, each.functions))}
                    for each in targets
                ],
            )
    return None


def _hex(function: bytes) -> str:
    return "0x" + function.hex()


def _listed(case: Case) -> Refusal | None:
    if case.version.profiles is not Profiles.LISTED or case.version.version_id in case.facts.listed:
        return None
    return Refusal(error=errors.ProfileNotSponsored, detail="The policy pays for listed profiles only.")


def _new(case: Case) -> Refusal | None:
    since = case.version.new_since
    if since is None or case.facts.profile_since >= since:
        return None
    return Refusal(
        error=errors.ProfileNotSponsored,
        detail=f"The policy pays for profiles that signed in here first at {since:%Y-%m-%d %H:%M} UTC or later.",
        limit=since.isoformat(),
    )


def _voucher(case: Case) -> Refusal | None:
    if case.version.profiles is not Profiles.VOUCHED:
        return None
    fault = case.facts.voucher_fault
    if fault is not None:
        return Refusal(error=type(fault), detail=fault.detail, extra=fault.members)
    if case.facts.voucher is None or case.facts.voucher.policy != case.version.policy:
        return Refusal(
            error=errors.VoucherMissing,
            detail="The policy pays only for calls with a voucher for it.",
            fits=case.version.policy,
        )
    return None


def _gas_price(case: Case) -> Refusal | None:
    ceiling = case.version.gas_price_ceiling_wei
    if ceiling is None or case.facts.gas_price_wei <= ceiling:
        return None
    # Text, because amounts in wei exceed the integers that JSON numbers represent exactly.
    return Refusal(
        error=errors.GasPriceTooHigh,
        detail=f"The gas price is {case.facts.gas_price_wei} wei, and the policy pays up to {ceiling}.",
        limit=str(ceiling),
        fits=str(ceiling),
    )


# In the order of checking: purpose, chain and times first, then conditions that only another call can fulfil.
CONDITIONS = (_purpose, _chain, _begun, _running, _readable, _targets, _listed, _new, _voucher, _gas_price)
