"""The rows of `checkin`, one file per noun."""

from checkin.models.checkins import CheckIn
from checkin.models.drops import DropItem, DropTable, DropType
from checkin.models.seeds import DailySeed
from checkin.models.switches import CheckInSwitch

__all__ = ["CheckIn", "CheckInSwitch", "DailySeed", "DropItem", "DropTable", "DropType"]
