"""The migrations of `relay`, and those that are rehearsed after its last one."""

from relay import migrations

__path__ = [*__path__, *migrations.__path__]
