"""Lists as files for a spreadsheet: whole, however long, and harmless to open."""

from gateway.common.exports.admin import Exportable
from gateway.common.exports.rows import Column

__all__ = ["Column", "Exportable"]
