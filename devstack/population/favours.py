"""What staff do for generated people, and their sessions."""

from datetime import datetime, timedelta
from decimal import Decimal

from credits.models import EntrySource
from devstack.population.life import Life
from rewards.models import Modifier, ModifierType
from users.models import SignInSession

_BONUSES = list(ModifierType)


def adjust(life: Life, at: datetime) -> None:
    """Let staff correct a balance."""
    town = life.town
    amount, reason = town.rng.choice(
        (
            (500, "Compensation for a failed offer."),
            (2_000, "Winner of the autumn raffle."),
            (-150, "Paid twice."),
        )
    )
    key = f"adjust:{town.hexadecimal(16)}"
    life.post(EntrySource.STAFF_ADJUSTMENT, amount, key, at, reason=reason, by=town.staff)


def give_back(life: Life, at: datetime) -> None:
    """Let staff give back what a relay call cost."""
    key, reason = f"relay-reversal:{life.town.hexadecimal(16)}", "The node had lost the call."
    life.post(EntrySource.RELAY_REVERSAL, life.town.rng.randint(40, 300), key, at, reason=reason)


def favour(life: Life, at: datetime) -> None:
    """Let staff give a bonus."""
    rng = life.town.rng
    life.modifiers.append(
        Modifier(
            user=life.user,
            modifier_type=rng.choice(_BONUSES),
            value=Decimal(rng.randint(2, 30)) / 100,
            key=f"staff:{life.town.hexadecimal(16)}",
            reason="A favour for a bug report.",
            actor=life.town.staff,
            created_at=at,
            expires_at=at + timedelta(days=rng.randint(1, 30)),
        )
    )


def sign_in(life: Life, at: datetime) -> None:
    """Open a session; some have been ended since."""
    reason = life.town.rng.choice(("", "", "", *SignInSession.Reason.values))
    life.rows.append(
        SignInSession(
            user=life.user,
            controller_address=life.controller,
            created_at=at,
            refreshed_at=at,
            expires_at=at + timedelta(days=30),
            revoked_at=at + timedelta(minutes=3) if reason else None,
            revoked_reason=reason,
        )
    )
