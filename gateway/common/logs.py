"""What no log line may hold."""

import re
from typing import Any

# Frameworks log paths as they are. A postback's ends in a secret, and its query is signed.
_POSTBACK = re.compile(r'(/api/postbacks/[^/\s"\\]+/)[^\s"\\]+')


def without_path_tokens(logger: Any, name: str, line: str) -> str:
    """Blot out what follows the network in the path of a postback; a structlog processor of rendered lines."""
    return _POSTBACK.sub(r"\1…", line)
