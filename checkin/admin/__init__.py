"""
What staff see of the check-in, and the little they decide: drafts, publishing, pauses.

No page shows a salt, and none shows a seed before it is public. Only the author
changes a draft, and only somebody else publishes it.
"""

from checkin.admin.records import CheckInAdmin, CheckInSwitchAdmin, DailySeedAdmin
from checkin.admin.tables import DropTableAdmin

__all__ = ["CheckInAdmin", "CheckInSwitchAdmin", "DailySeedAdmin", "DropTableAdmin"]
