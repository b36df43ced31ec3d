"""
Django's settings, read from the environment by `gateway.common.env`, one module for each subject.

Closed by default: secrets, hosts and keys have no defaults, and a malformed value stops
the process at start with the variable's name. `docs/configuration.md`
lists every variable. Business numbers that staff may change are rows, not settings.
"""

from gateway.settings.callers import *  # noqa: F403
from gateway.settings.earnings import *  # noqa: F403
from gateway.settings.payments import *  # noqa: F403
from gateway.settings.process import *  # noqa: F403
from gateway.settings.records import *  # noqa: F403
from gateway.settings.relay import *  # noqa: F403
from gateway.settings.schedule import *  # noqa: F403
from gateway.settings.security import *  # noqa: F403
from gateway.settings.sign_in import *  # noqa: F403
from gateway.settings.staff import *  # noqa: F403
from gateway.settings.watching import *  # noqa: F403
from gateway.settings.workers import *  # noqa: F403
