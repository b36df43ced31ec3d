"""
How a drop is drawn, and what a table is worth: integers on arguments.

Nothing here reads the database or the clock. Whoever has the seed of a day, the items
and the content of a ticket gets the same draw; `docs/check-in.md` says how.
"""

from checkin.draw.dice import below, commitment_of
from checkin.draw.drawing import Draw, Ticket, draw
from checkin.draw.items import MINUTELESS, Drop, Item, grain_of
from checkin.draw.odds import Odds, odds_of, probabilities_of

__all__ = [
    "MINUTELESS",
    "Draw",
    "Drop",
    "Item",
    "Odds",
    "Ticket",
    "below",
    "commitment_of",
    "draw",
    "grain_of",
    "odds_of",
    "probabilities_of",
]
