"""JSON that comes back equal: what may be stored, and the two libraries that do it.

orjson is ten times faster than the standard library, and differs in four places:

- it writes NaN and infinity as `null`, and dataclasses, dates and UUIDs as text;
- it reads integers beyond 64 bits as floats, and refuses to write them;
- it neither reads nor writes lone surrogates;
- it stops at 254 levels of nesting.

So `plain` refuses beforehand what is not JSON, `dumps` falls back to the standard
library for what orjson cannot write, and the codec it answers says which one must read.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Final

import orjson

__all__ = [
    "FAST",
    "WIDE",
    "NotJsonError",
    "dumped",
    "dumps",
    "in_utf8",
    "loads",
    "plain",
    "plain_dict",
    "utf8",
]

FAST: Final = ""
"""The codec of JSON that both libraries read alike."""

WIDE: Final = "w"
"""The codec of JSON that only the standard library reads without loss."""

# Deeper than anything a provider sends, and within what orjson writes. It turns a value
# that contains itself into an error instead of an exhausted stack.
_MAX_DEPTH: Final = 200

# What Python neither writes nor reads as text, unless a process asks for it.
_MAX_DIGITS: Final = 4300
_TOO_LARGE: Final = 10**_MAX_DIGITS
_TOO_SMALL: Final = -_TOO_LARGE


class NotJsonError(ValueError):
    """A value cannot be said in JSON; `path` leads to it from the value given."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        """Name the place and the reason, as in `[0].content: NaN is not JSON`."""
        return f"{''.join(self.path)}: {self.reason}" if self.path else self.reason


def plain(value: Any, depth: int = 0) -> Any:
    """Copy a value into plain dicts, lists, text, numbers, booleans and None.

    SDK models (anything with pydantic's `model_dump`) become dicts on the way, with
    their unknown fields and without the fields that were never set.

    Raises:
        NotJsonError: A part of it has no JSON form: NaN, a set, bytes, a date, a key
            that is not text, more than 200 levels of nesting, or a whole number of more
            than 4,300 digits.
    """
    kind = type(value)
    if (
        kind is str
        or value is None
        or kind is bool
        or (kind is int and _TOO_SMALL < value < _TOO_LARGE)
    ):
        return value
    if kind is float:
        return _finite(value)
    if depth > _MAX_DEPTH:
        msg = f"nested more than {_MAX_DEPTH} levels deep, or contains itself"
        raise NotJsonError(msg)
    if isinstance(value, dict):
        return plain_dict(value, depth)
    if isinstance(value, list | tuple):
        return _plain_list(value, depth)
    if hasattr(value, "model_dump"):
        return plain(dumped(value), depth + 1)
    return _plain_scalar(value)


def plain_dict(value: dict[Any, Any], depth: int = 0) -> dict[str, Any]:
    """Copy a dict as `plain` does."""
    copy: dict[str, Any] = {}
    for key, item in value.items():
        if type(key) is str and type(item) is str:
            copy[key] = item
            continue
        if not isinstance(key, str):
            msg = f"the key {key!r} is {type(key).__name__}, and JSON has only text keys"
            raise NotJsonError(msg)
        try:
            copy[str.__str__(key)] = plain(item, depth + 1)
        except NotJsonError as error:
            error.path.insert(0, f".{key}")
            raise
    return copy


def dumps(value: Any) -> tuple[str, bytes]:
    """Write a plain value as JSON in UTF-8, and say which codec reads it back."""
    try:
        return FAST, orjson.dumps(value)
    except TypeError:
        # What is left of plain values: integers beyond 64 bits and lone surrogates.
        # `backslashreplace` writes a surrogate as \udXXX, which is its JSON escape.
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return WIDE, text.encode("utf-8", "backslashreplace")


def utf8(what: str, text: str) -> bytes:
    """Write a text in UTF-8.

    Args:
        what: How the text is named in an error.
        text: The text.

    Raises:
        ValueError: It has half a letter in it, a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        msg = f"{what} has a lone surrogate at position {error.start}, which UTF-8 cannot say"
        raise ValueError(msg) from None


def in_utf8(text: str) -> str:
    """Give a text as UTF-8 can say it: with replacements for lone surrogates, which JSON can."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def loads(data: bytes) -> Any:
    """Read JSON that `dumps` wrote, behind the letter of its codec.

    Raises:
        ValueError: It is not JSON.
    """
    if data.startswith(b"w"):
        return json.loads(data[1:].decode())
    return orjson.loads(data)


def _plain_list(value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
    copy: list[Any] = []
    for item in value:
        try:
            copy.append(plain(item, depth + 1))
        except NotJsonError as error:
            error.path.insert(0, f"[{len(copy)}]")
            raise
    return copy


def _plain_scalar(value: Any) -> Any:
    # Subclasses, enumerations of text or numbers among them, by the value they stand for.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        if not _TOO_SMALL < value < _TOO_LARGE:
            msg = f"a whole number of more than {_MAX_DIGITS:,} digits cannot be read back"
            raise NotJsonError(msg)
        return int.__int__(value)
    if isinstance(value, float):
        return _finite(float.__float__(value))
    msg = f"{type(value).__name__} has no JSON form; convert it before it is stored"
    raise NotJsonError(msg)


def _finite(value: float) -> float:
    if not isfinite(value):
        msg = f"{value!r} is not JSON"
        raise NotJsonError(msg)
    return value


def dumped(model: Any) -> Any:
    """Give the fields of an SDK's model that were set; what is in them need not be JSON."""
    # Not mode="json", which turns NaN into null without a word; and by what a field holds,
    # not by what it was declared to hold. Fields that were never set are left out, as
    # providers refuse some nulls.
    data = model.model_dump(
        by_alias=True, exclude_unset=True, serialize_as_any=True, warnings=False
    )
    return _with_tags(model, data)


def _with_tags(value: Any, dumped: Any) -> Any:
    # A model may hold its role or type as a default that nobody sets; here it comes back,
    # at any depth.
    if isinstance(dumped, list | tuple) and isinstance(value, list | tuple):
        return [_with_tags(*pair) for pair in zip(value, dumped, strict=True)]
    if not isinstance(dumped, dict):
        return dumped
    fields = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    dumped = {name: _with_tags(fields.get(name), item) for name, item in dumped.items()}
    if isinstance(value, dict) or value is None:
        return dumped
    tags = {name: getattr(value, name, None) for name in ("role", "type") if name not in dumped}
    return {**{name: tag for name, tag in tags.items() if isinstance(tag, str)}, **dumped}
