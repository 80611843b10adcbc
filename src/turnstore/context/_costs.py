"""What a message costs in tokens, given what a text costs: one walk through its JSON.

Whatever depth it stands at, a part that is an image costs what an image costs, and data is
never taken for text: a tool may answer with a screenshot as well as a user may.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from ._images import DATA_URL, anthropic_tokens, google_tokens, image_size, openai_tokens

__all__ = ["message_tokens"]

_Text: TypeAlias = Callable[[str], int]

_PER_MESSAGE = 3
_PER_NAME = 1
_PER_TOOL_CALL = 8
_IMAGE_LOW = 85
_IMAGE_UNSEEN, _GOOGLE_IMAGE_UNSEEN = 765, 258  # where its size cannot be read
_DATA_MOST = 4000
_CHARACTERS_PER_TOKEN = 4

# What an image is called, by providers and frameworks, and where it then has the image.
_IMAGE_KINDS = frozenset(
    (
        "image",
        "image_url",
        "image-url",
        "input_image",
        "image_file",
        "computer_screenshot",
        "image_generation_call",
    )
)
# What says no more than that a part is text, and costs nothing beside it.
_TEXT_KINDS = ("text", "input_text", "output_text")
_KIND_FIELDS = ("type", "block_type", "kind")
_MEDIA_TYPE_FIELDS = ("media_type", "mime_type", "mimeType")
_GOOGLE_FIELDS = ("inlineData", "inline_data", "fileData", "file_data")

# Where no text stands that a model reads, but data, a signature, or where data is to be found.
_DATA_FIELDS = frozenset(
    (
        "base64",
        "data",
        "encrypted_content",
        "file",
        "file_data",
        "file_id",
        "image",
        "image_file",
        "image_url",
        "result",
        "signature",
        "source",
        "thoughtSignature",
        "thought_signature",
        "uri",
        "url",
        "video_url",
    )
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]{500,}")  # nobody writes such a word

# What the caller's own functions take and answer: the model reads all of it as text.
_CALLERS_FIELDS = frozenset(("args", "arguments", "input", "response"))


def message_tokens(message: dict[str, Any], text: _Text) -> int:
    """Count the tokens of a message, by the rules that `tokens` states.

    Args:
        message: Of any format.
        text: Counts those of a text.
    """
    if _is_image(message):  # an item of Responses is one by itself
        return _PER_MESSAGE + _image(message, text)
    total = _PER_MESSAGE
    for field, value in message.items():
        if field == "tool_calls" and isinstance(value, list):
            total += sum(_PER_TOOL_CALL + _texts(call, text) for call in value)
        elif field == "name":
            total += _PER_NAME + text(str(value))
        else:
            total += _tokens(value, text, field)
    return total


def _tokens(value: Any, text: _Text, field: str = "") -> int:
    if isinstance(value, dict):
        return _texts(value, text) if field in _CALLERS_FIELDS else _part(value, text)
    if isinstance(value, list):
        return sum(_tokens(item, text, field) for item in value)
    if isinstance(value, str) and field in _DATA_FIELDS and _is_data(value):
        return min(len(value) // _CHARACTERS_PER_TOKEN, _DATA_MOST)
    return _texts(value, text)


def _part(part: dict[str, Any], text: _Text) -> int:
    said = part.get("text")
    if isinstance(said, str) and len(part) <= 1 + (part.get("type") in _TEXT_KINDS):
        return text(said)  # which most parts are
    if _is_image(part):
        return _image(part, text)
    total = _PER_TOOL_CALL if "functionCall" in part else 0
    for field, value in part.items():
        if field in _GOOGLE_FIELDS and _is_google_image(value):
            size = _size_of(value)
            total += google_tokens(size) if size else _GOOGLE_IMAGE_UNSEEN
        elif field not in _MEDIA_TYPE_FIELDS and not (field == "type" and value in _TEXT_KINDS):
            total += _tokens(value, text, field)
    return total


def _is_google_image(held: Any) -> bool:
    return isinstance(held, dict) and _media_type(held).startswith("image/")


def _is_image(part: dict[str, Any]) -> bool:
    # What only has the name of an image, such as the schema of a tool, holds none.
    if part.keys().isdisjoint(_DATA_FIELDS):
        return False
    kinds = (part.get(field) for field in _KIND_FIELDS)
    return _media_type(part).startswith("image/") or any(
        isinstance(kind, str) and kind in _IMAGE_KINDS for kind in kinds
    )


def _image(part: dict[str, Any], text: _Text) -> int:
    image = part.get("image_url")
    detail = image.get("detail") if isinstance(image, dict) else part.get("detail")
    said = _texts(part.get("revised_prompt"), text) + _texts(part.get("text"), text)
    if detail == "low":
        return said + _IMAGE_LOW
    size = _size_of(part)
    if size is None:
        return said + _IMAGE_UNSEEN
    # Anthropic's images alone are a source within a part.
    rule = anthropic_tokens if isinstance(part.get("source"), dict) else openai_tokens
    return said + rule(size)


def _size_of(part: dict[str, Any]) -> tuple[int, int] | None:
    """Read the size of the image that a part holds, or its image within; None where none is."""
    held = [value for field, value in part.items() if field in _DATA_FIELDS]
    inner = [one for value in held if isinstance(value, dict) for one in value.items()]
    held += [value for field, value in inner if field in _DATA_FIELDS]
    sizes = (image_size(value) for value in held if isinstance(value, str))
    return next(filter(None, sizes), None)


def _media_type(part: dict[str, Any]) -> str:
    return next((str(part[field]) for field in _MEDIA_TYPE_FIELDS if field in part), "")


def _is_data(value: str) -> bool:
    return bool(_BASE64.fullmatch(value) or DATA_URL.match(value))


def _texts(value: Any, text: _Text) -> int:
    """Count the texts in any JSON, not the braces and keys that its provider leaves out."""
    if isinstance(value, dict):
        return sum(_texts(item, text) for item in value.values())
    if isinstance(value, list):
        return sum(_texts(item, text) for item in value)
    return 0 if value is None else text(str(value))
