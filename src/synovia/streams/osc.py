"""Read messages of Open Sound Control 1.0 from untrusted bytes, and write messages.

It reads only what VMC uses: bundles, and arguments of the types i, f, s, T, F, N and b. It refuses a datagram with any
other content as a whole. Bundles may be nested, up to a small depth.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

Value = int | float | str | bool | bytes | None
Message = tuple[str, tuple[Value, ...]]
_BUNDLE: Final = b"#bundle\0"
_DEPTH: Final = 4
_MESSAGES: Final = 1024  # largest number of messages in a datagram
_NOW: Final = struct.pack(">Q", 1)  # time tag of a bundle that applies at once


class OscError(ValueError):
    """Exception for bytes that are not valid messages."""


def read_messages(data: bytes) -> list[Message]:
    """Return the messages of a datagram.

    Raises:
        OscError: If the datagram is malformed, or contains unsupported types.
    """
    out: list[Message] = []
    todo = [(data, 0)]
    while todo:
        part, depth = todo.pop()
        if not part.startswith(_BUNDLE):
            out.append(_message(part))
            if len(out) > _MESSAGES:
                raise OscError("too many messages")
            continue
        if depth >= _DEPTH or len(part) < 16:
            raise OscError("bundles in bundles")
        at, parts = 16, list[tuple[bytes, int]]()
        while at < len(part):
            size = int.from_bytes(part[at : at + 4], "big")
            at += 4
            if size % 4 or size == 0 or at + size > len(part):
                raise OscError("size of an element")
            parts.append((part[at : at + size], depth + 1))
            at += size
        if len(todo) + len(parts) > _MESSAGES:
            raise OscError("too many messages")
        todo += reversed(parts)
    return out


def _message(data: bytes) -> Message:
    """Parse one message."""
    address, at = _text(data, 0)
    if not address.startswith("/"):
        raise OscError("address")
    if at >= len(data):
        return address, ()
    types, at = _text(data, at)
    if not types.startswith(","):
        raise OscError("types")
    values: list[Value] = []
    try:
        for kind in types[1:]:
            if kind == "f":
                values.append(struct.unpack_from(">f", data, at)[0])
                at += 4
            elif kind == "i":
                values.append(struct.unpack_from(">i", data, at)[0])
                at += 4
            elif kind == "s":
                text, at = _text(data, at)
                values.append(text)
            elif kind == "b":
                size = struct.unpack_from(">i", data, at)[0]
                if not 0 <= size <= len(data) - at - 4:
                    raise OscError("size of a blob")
                values.append(data[at + 4 : at + 4 + size])
                at += 4 + (size + 3) // 4 * 4
            elif kind in "TFN":
                values.append({"T": True, "F": False, "N": None}[kind])
            else:
                raise OscError(f"type {kind!r}")
    except struct.error as error:
        raise OscError("end of the message") from error
    return address, tuple(values)


def _text(data: bytes, at: int) -> tuple[str, int]:
    """Parse a text; return it and the index after its padding zeros."""
    end = data.find(b"\0", at)
    if end < 0:
        raise OscError("end of a text")
    try:
        text = data[at:end].decode("utf-8")
    except UnicodeDecodeError as error:
        raise OscError("text") from error
    return text, end + 4 - (end - at) % 4


def message(address: str, values: Sequence[int | float | str]) -> bytes:
    """Return a message as bytes."""
    types, data = ",", b""
    for value in values:
        if isinstance(value, str):
            types, data = types + "s", data + _padded(value)
        elif isinstance(value, int):
            types, data = types + "i", data + struct.pack(">i", value)
        else:
            types, data = types + "f", data + struct.pack(">f", value)
    return _padded(address) + _padded(types) + data


def bundle(messages: Sequence[bytes]) -> bytes:
    """Return a bundle of messages that applies at once."""
    return _BUNDLE + _NOW + b"".join(len(one).to_bytes(4, "big") + one for one in messages)


def _padded(text: str) -> bytes:
    """Return a text padded with at least one zero byte to a multiple of 4 bytes."""
    data = text.encode()
    return data + b"\0" * (4 - len(data) % 4)
