"""Logins of the demo's staff, with the code that an authenticator app would show now."""

import time
from collections.abc import Mapping
from typing import Any

import pyotp

# A code is renewed after this time, and accepted a little longer.
_CODE_SECONDS = 30


def login_lines(description: Mapping[str, Any], role: str) -> list[str]:
    """
    Return address, name, password and present code of a role's login, as `stack.json` describes them.

    Raises:
        RuntimeError: there is no login of this role.
    """
    logins = {"staff": description["staff"], **description["staff_by_role"]}
    if role not in logins:
        raise RuntimeError(f"There is no login {role}. There are: {', '.join(logins)}.")
    login = logins[role]
    seconds = _CODE_SECONDS - int(time.time()) % _CODE_SECONDS
    again = "make code" if role == "staff" else f"make code ROLE={role}"
    code = pyotp.TOTP(login["totp_secret"]).now()
    return [
        f"  admin     {description['admin_url']}",
        f"  name      {login['username']}",
        f"  password  {login['password']}",
        f"  code      {code} (for {seconds} s, once; `{again}` shows the next)",
    ]
