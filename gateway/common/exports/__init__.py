"""Lists as spreadsheet files: complete, however long, and safe to open."""

from gateway.common.exports.admin import Exportable
from gateway.common.exports.rows import Column

__all__ = ["Column", "Exportable"]
