"""What an image costs in tokens, by its size: read from its first bytes, by the provider's rule.

Each rule is the published one of a provider for most of its models. Sizes are in points, and
nothing costs more than the largest image that the provider does not scale down.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Callable
from functools import partial
from struct import error as StructError  # noqa: N812 - what it is
from struct import unpack_from
from typing import TypeAlias

__all__ = ["DATA_URL", "anthropic_tokens", "google_tokens", "image_size", "openai_tokens"]

Size: TypeAlias = tuple[int, int]

_Read: TypeAlias = Callable[[int, int], bytes]

DATA_URL = re.compile(r"data:[^,]{0,200};base64,")
"""How a URL begins that is itself the data."""

_URL_SAFE = str.maketrans("-_", "+/")

_HEAD = 30  # bytes: of each format but JPEG, the size stands among them
_SEGMENTS = 256  # of a JPEG before its size: more than those that a camera writes
_LONGEST = 1 << 16  # of a side; no provider takes one that is near it

# In JPEG, a size follows these; of the others, those without a length end or fill the header.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_NO_LENGTH = frozenset((0x01, *range(0xD0, 0xDA)))
_SCAN = 0xDA


def image_size(data: str) -> Size | None:
    """Read width and height of a PNG, JPEG, GIF or WebP; None where they cannot be told.

    Args:
        data: Base64, or a URL that holds it. Only what is looked at is decoded: some 30
            bytes, and of a JPEG 9 for each of its first segments.
    """
    url = DATA_URL.match(data)
    try:
        size = _size(partial(_decoded, data, url.end() if url else 0))
    except (ValueError, StructError):  # it is no base64, or ends too early
        return None
    return size if size and all(0 < side <= _LONGEST for side in size) else None


def openai_tokens(size: Size) -> int:
    """Count 85, and 170 for each tile of 512 points, once it fits into 2,048 by 768."""
    short, long = _within(*sorted(size), longest=2048)
    if short > 768:  # noqa: PLR2004 - as stated
        short, long = 768, long * 768 // short
    return 85 + 170 * _ceil(short, 512) * _ceil(long, 512)


def anthropic_tokens(size: Size) -> int:
    """Count 1 for each patch of 28 points, once it is no longer than 1,568 points and tokens."""
    short, long = _within(*sorted(size), longest=1568)
    return min(_ceil(short, 28) * _ceil(long, 28), 1568)


def google_tokens(size: Size) -> int:
    """Count 258 for each tile of two thirds of its height, once it is within 3,072 points."""
    short, long = _within(*sorted(size), longest=3072)
    if long <= 384:  # noqa: PLR2004 - small ones are one tile
        return 258
    tile = min(max(short * 2 // 3, 256), 768)
    return 258 * _ceil(short, tile) * _ceil(long, tile)


def _within(short: int, long: int, *, longest: int) -> Size:
    return (short, long) if long <= longest else (max(1, short * longest // long), longest)


def _ceil(length: int, part: int) -> int:
    return -(-length // part)


def _decoded(data: str, start: int, at: int, count: int) -> bytes:
    """Decode some bytes alone; fewer where the data ends before."""
    first = at // 3 * 4
    text = data[start + first : start + -(-(at + count) // 3) * 4]
    return a2b_base64(text.translate(_URL_SAFE), strict_mode=True)[at % 3 :][:count]


def _size(read: _Read) -> Size | None:
    head = read(0, _HEAD)
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _pair(">II", head, 16) if head[12:16] == b"IHDR" else None
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _pair("<HH", head, 6)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _webp(head)
    return _jpeg(read) if head.startswith(b"\xff\xd8\xff") else None


def _webp(head: bytes) -> Size | None:
    kind = head[12:16]
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = _pair("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L" and head[20:21] == b"\x2f":
        (bits,) = unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8X":
        width, rest, height = unpack_from("<HBH", head, 24)
        (last,) = unpack_from("<B", head, 29)
        return (width | rest << 16) + 1, (height | last << 16) + 1
    return None


def _jpeg(read: _Read) -> Size | None:
    """Go from segment to segment up to the one that holds the size."""
    at = 2
    for _ in range(_SEGMENTS):
        mark, kind, length = unpack_from(">BBH", read(at, 9))
        if mark != 0xFF or kind == _SCAN:  # noqa: PLR2004 - a segment begins with it
            return None
        if kind in _FRAMES:
            height, width = _pair(">HH", read(at, 9), 5)
            return width, height
        if kind == 0xFF:  # noqa: PLR2004 - it fills
            at += 1
        else:
            at += 2 if kind in _NO_LENGTH else 2 + length
    return None


def _pair(layout: str, data: bytes, at: int) -> Size:
    first, second = unpack_from(layout, data, at)
    return int(first), int(second)
