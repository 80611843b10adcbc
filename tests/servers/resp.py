"""Where one frame of the Redis protocol ends, which is all that the proxy has to know of it."""

from __future__ import annotations

_SIZED = b"$=!"  # a length, then so many bytes and a line end
_NESTED = {b"*": 1, b"~": 1, b">": 1, b"%": 2, b"|": 2}  # a count, then so many frames each


def frame_end(data: bytes | bytearray, start: int = 0) -> int | None:
    """Find the end of the frame that begins at `start`.

    Returns:
        The offset of the byte after it, or None if `data` does not hold all of it yet.
    """
    pending, at = 1, start
    while pending:
        line_end = data.find(b"\r\n", at)
        if line_end < 0:
            return None
        kind, text = bytes(data[at : at + 1]), data[at + 1 : line_end]
        at = line_end + 2
        pending -= 1
        if kind in _NESTED and not text.startswith(b"-"):
            # An attribute stands before the frame that it belongs to, which is still to come.
            pending += int(text) * _NESTED[kind] + (kind == b"|")
        elif kind in _SIZED and not text.startswith(b"-"):
            at += int(text) + 2
    return at if at <= len(data) else None


def command_name(frame: bytes | bytearray) -> str:
    """Give the name of the command in `frame`, in capitals."""
    return bytes(frame).split(b"\r\n", 3)[2].decode().upper()
