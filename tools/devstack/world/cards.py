"""Names and pictures of demo profiles (LSP-3), embedded in the data value, so no server is needed."""

import json
import struct
import zlib
from base64 import b64encode

from eth_utils.crypto import keccak

LSP3_PROFILE_KEY = keccak(text="LSP3Profile")
_SIDE = 96


def card(name: str, color: tuple[int, int, int]) -> bytes:
    """Return the data value of a profile with this name, and a disc of this color as picture."""
    picture = _disc(color)
    image = {
        "width": _SIDE,
        "height": _SIDE,
        "url": _data_url("image/png", picture),
        "verification": {"method": "keccak256(bytes)", "data": "0x" + keccak(picture).hex()},
    }
    document = json.dumps({"LSP3Profile": {"name": name, "profileImage": [image]}}).encode()
    # LSP-2: zero identifier, keccak256(bytes), its 32 bytes, then the URL.
    head = bytes(2) + keccak(text="keccak256(bytes)")[:4] + (32).to_bytes(2, "big")
    return bytes(head + keccak(document) + _data_url("application/json", document).encode())


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"


def _disc(color: tuple[int, int, int]) -> bytes:
    """Return a PNG with two colors: a disc on white."""
    middle, rows = (_SIDE - 1) / 2, []
    for y in range(_SIDE):
        row = [(x - middle) ** 2 + (y - middle) ** 2 < (_SIDE * 0.45) ** 2 for x in range(_SIDE)]
        rows.append(b"\0" + bytes(row))
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 3, 0, 0, 0)
    palette = bytes((255, 255, 255, *color))
    parts = (
        (b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""),
    )  # fmt: skip
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )
