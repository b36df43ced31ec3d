"""The dashboard as a whole: printed, and its histories joined to one chain of balances."""

from devstack.console import say
from devstack.journey.checks import expect
from devstack.journey.standing import Standing, Thing
from devstack.wallet import Wallet

_SHOWN, _LONGEST = 6, 100


def read_books(wallet: Wallet) -> None:
    """Print the dashboard and hold every figure of it against the others, and against the quota."""
    standing = Standing.of(wallet)
    info = standing.shown["userInfo"]
    earnings, calls = standing.shown["earningHistory"], standing.shown["transactionHistory"]
    expect("the credits on the dashboard", standing.credits, wallet.quota()["quota"])
    _check_rows(wallet, earnings, calls)
    start = _walk_back(standing.credits, earnings, calls)
    if len(earnings) < _LONGEST and len(calls) < _LONGEST:
        expect("where the histories begin", start, 0)
    say("  ✓ dashboard:")
    for name, value in info.items():
        say(f"      {name} {value}")
    for name in ("permanentBadge", "subscriberBadge"):
        badge = standing.shown[name]
        bounds = f"{badge['exp_lower_bound']} to {badge['exp_upper_bound']} exp"
        terms = f"offers +{badge['bonus_creds_offerwall']:.0%}, {badge['credits_back_percent']:.1%} back"
        say(f"      {name}: {bounds}, {terms}")
    for modifier in standing.shown["modifiers"]:
        say(
            f"      modifier {modifier['modifier_type']} {modifier['value']:.2%} until {modifier['expires_at']}"
        )
    _tell(earnings, calls)
    say(f"    {len(earnings)} earnings and {len(calls)} relay transactions explain every credit")


def _check_rows(wallet: Wallet, earnings: list[Thing], calls: list[Thing]) -> None:
    for row in (*earnings, *calls):
        expect("related_user", row["related_user"], wallet.profile_address)
    for earning in earnings:
        after = earning["credits_before"] + earning["credits_earned"]
        expect("credits_after of an earning", earning["credits_after"], after)
    for call in calls:
        used = call["credits_before"] - call["real_cost"]
        expect(f"credits_after of {call['transaction_hash']}", call["credits_after"], used)


def _walk_back(balance: int, earnings: list[Thing], calls: list[Thing]) -> int:
    """Follow the newest rows back to where a history ends; each must end where the one after it began."""
    rest = [list(earnings), [call for call in calls if call["real_cost"]]]
    while any(rest) and not (_is_cut_off(earnings, rest[0]) or _is_cut_off(calls, rest[1])):
        fitting = [rows for rows in rest if rows and rows[0]["credits_after"] == balance]
        expect(f"that a row ends at {balance}, which the next one began with", bool(fitting), True)
        balance = fitting[0].pop(0)["credits_before"]
    return balance


def _is_cut_off(shown: list[Thing], left: list[Thing]) -> bool:
    return len(shown) == _LONGEST and not left


def _tell(earnings: list[Thing], calls: list[Thing]) -> None:
    for earning in earnings[:_SHOWN]:
        moved = f"{earning['credits_before']} → {earning['credits_after']}"
        say(f"      {earning['credit_source']} {earning['credits_earned']:+d}: {moved}")
    for call in calls[:_SHOWN]:
        moved = f"{call['credits_before']} → {call['credits_after']}"
        say(f"      {call['transaction_hash'][:14]}… {call['status']} −{call['real_cost']}: {moved}")
