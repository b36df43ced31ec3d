"""Who may ban whom, and who may lift a ban, as pure functions."""


def refusal_of_ban(*, is_staff: bool, is_active: bool) -> str:
    """Return why an account cannot be banned; empty if it can."""
    if is_staff:
        return "This is a member of staff. Lock the account out instead."
    return "" if is_active else "The account is already banned, closed, or being deleted."


def refusal_of_lifting(*, banned_by: int | None, actor: int) -> str:
    """Return why `actor` cannot lift the ban that `banned_by` imposed, if there is one; empty if they can."""
    if banned_by is None:
        return "The account is not banned."
    return "You banned this person, so a colleague lifts the ban." if banned_by == actor else ""
