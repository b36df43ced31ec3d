"""Signs relay calls with LUKSO's own library, as LUKSO's wallets do."""

import json
import subprocess
from pathlib import Path

from devstack.toolchain import install_node_packages
from tests.clients.running import NODE

_FOLDER = Path(__file__).with_name("eip191_signer")
_VERSION = 25


def sign(
    private_key: str, *, key_manager: str, chain_id: int, nonce: int, payload: bytes, validity: int = 0
) -> str:
    """Return the signature of a call without value, as LSP-25 has its message: in hexadecimal digits with `0x`."""
    install_node_packages(_FOLDER, "LUKSO's library for signatures")
    words = (_VERSION, chain_id, nonce, validity, 0)
    message = b"".join(word.to_bytes(32, "big") for word in words) + payload
    asked = {"validator": key_manager, "message": "0x" + message.hex(), "key": private_key}
    ended = subprocess.run(
        [*NODE, _FOLDER / "sign.js"], input=json.dumps(asked), capture_output=True, text=True, check=True
    )
    return ended.stdout
