"""TCP connections whose packets disappear, as when a firewall has forgotten an idle connection."""

import ctypes
import socket
import struct

_SO_ATTACH_FILTER = 26
# A classic BPF program of one instruction (see bpf(4)): accept no byte of any packet.
_DROP = struct.pack("HBBI", 0x06, 0, 0, 0)


def drop_packets(connection: socket.socket) -> None:
    """Drop every packet that arrives at this socket from now on; the peer gets no acknowledgement."""
    program = ctypes.create_string_buffer(_DROP, len(_DROP))
    connection.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program))
    )
