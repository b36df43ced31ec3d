"""What a part of an admin class is built on, so that it may call the class that it becomes a part of."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

    AdminMixin = ModelAdmin[Any]
else:
    AdminMixin = object
