"""Reads postings by their layout, and not by the code that a search reads them with."""

from __future__ import annotations

import struct


def unpack(records: bytes) -> list[tuple[str, int, int]]:
    """Give the ids, frequencies and lengths of the postings of one term."""
    return [
        (name.decode(), tf, length) for name, tf, length in struct.iter_unpack(">12sBH", records)
    ]
