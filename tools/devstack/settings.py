"""
The settings of the service in a development stack. The image does not contain this module.

A variable `DEVSTACK_NAME` overrides the setting `NAME` with a value in JSON (`devstack.environment.overriding`).
"""

import json
import os

import gateway.settings

_PREFIX = "DEVSTACK_"
# All callers share one network address, and load generators represent many users.
_UNLIMITED = "60000000/minute"

_service = {name: value for name, value in vars(gateway.settings).items() if name.isupper()}
_rates = [name for name, value in _service.items() if name.endswith("_RATE") and isinstance(value, str)]
_overridden = {
    name.removeprefix(_PREFIX): json.loads(text)
    for name, text in os.environ.items()
    if name.startswith(_PREFIX)
}
globals().update(_service | dict.fromkeys(_rates, _UNLIMITED) | _overridden)

WEBHOOK_ALLOW_HTTP = WEBHOOK_ALLOW_LOOPBACK = True
if "DEV_EXTENSION_FILE" in _overridden:
    # The script calls the node from the account page.
    _policy = gateway.settings.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    _policy["connect-src"] = ["'self'", *gateway.settings.CHAIN_RPC_URLS]
if _seconds := _overridden.get("DATABASE_LOCK_SECONDS"):
    gateway.settings.DATABASE_ROLE_LIMITS["lock_timeout"] = f"{_seconds}s"
    _options = gateway.settings.DATABASES["default"]["OPTIONS"]
    if "options" in _options:
        _options["options"] += f" -c lock_timeout={_seconds}s"
