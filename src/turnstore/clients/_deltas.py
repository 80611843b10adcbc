"""Merge the deltas of a streamed chat message, in whatever dialect they come.

The SDK's own folding is made for OpenAI's own server. Servers that speak the same protocol repeat
roles, ids and names in every delta, send lists without positions, send a tool call whole, give two
calls the same position, or send the arguments anew as they grow. What is stored goes back to the
model for as long as the conversation lives, so each of these must come out as one plain message,
with every field that we do not know kept as it was.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias, TypeGuard

Json: TypeAlias = dict[str, Any]

# Said once for the whole message or call, though some servers say them in every delta.
_ATOMS: Final = frozenset(
    {
        "role",
        "id",
        "type",
        "name",
        "format",
        "call_id",
        "signature",
        "thought_signature",
        "encrypted_content",
    }
)
# Said again as it changes: the newest word counts.
_LATEST: Final = frozenset({"status", "phase", "channel"})
# Texts that a server sends as lists of parts, cut anywhere (Mistral's thinking).
_TEXT_LISTS: Final = ("content", "thinking")
_TEXT_PARTS: Final = ("text", "thinking")


def merge(into: Json, delta: Json) -> Json:
    """Merge a delta into `into`, which `plain` turns into JSON at the end; `delta` is not kept."""
    for key, new in delta.items():
        old = into.get(key)
        if new is None:
            into.setdefault(key, None)
        elif isinstance(new, str):
            into[key] = _merged_text(key, old, new)
        elif is_dict(new):
            into[key] = merge(as_dict(old), new)
        elif is_list(new):
            into[key] = _merged_list(key, old, new)
        else:
            into[key] = new
    return into


def plain(value: object) -> object:
    """The JSON that the merged deltas make."""
    if isinstance(value, _Text):
        return str(value)
    if isinstance(value, _Calls):
        return [plain(call) for call in value.in_order()]
    if is_dict(value):
        return {key: plain(item) for key, item in value.items()}
    if is_list(value):
        return [plain(item) for item in value]
    return value


def is_dict(value: object) -> TypeGuard[Json]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON array."""
    return isinstance(value, list)


def as_dict(value: object) -> Json:
    """The value if it is a JSON object, else an empty one."""
    return value if is_dict(value) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a JSON array, else an empty one."""
    return value if is_list(value) else []


def dicts(value: object) -> list[Json]:
    """Copies of the dicts in a list; none if it is no list."""
    return [dict(item) for item in as_list(value) if is_dict(item)]


class _Text:
    """A text that arrives in pieces; joined once, at the end."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def __str__(self) -> str:
        text = "".join(self.pieces)
        try:
            text.encode()
        except UnicodeEncodeError:  # a character cut in two: each chunk had half of its surrogates
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text


class _Arguments(_Text):
    """The arguments of a function call: JSON text in pieces, or, with some servers, as it grows.

    Pieces are the rule, so whatever reads as JSON when simply joined is taken as that. Only what
    does not is tried as texts that grow (each begins with the one before it), then as whole texts
    one after the other, of which the last counts. If nothing of this is JSON, the model wrote
    none, and the pieces stay as they came.
    """

    def __str__(self) -> str:
        joined = super().__str__()
        if len(self.pieces) == 1 or _is_object(joined):
            return joined
        grown = ""
        for piece in self.pieces:
            grown = piece if grown and piece.startswith(grown) else grown + piece
        return grown if _is_object(grown) else _last_object(joined)


class _Calls:
    """The tool calls of one message, each found again by its id, its position, or as the last."""

    def __init__(self) -> None:
        self._slots: list[tuple[int | None, Json]] = []

    def add(self, deltas: list[Any]) -> None:
        for delta in dicts(deltas):
            index = delta.pop("index", None)
            position = index if isinstance(index, int) else None
            call = self._find(position, delta)
            if call is None:
                call = Json()
                self._slots.append((position, call))
            merge(call, delta)

    def _find(self, position: int | None, delta: Json) -> Json | None:
        near = [call for at, call in self._slots if position is None or at in (None, position)]
        for call in reversed(near):
            if delta.get("id") and call.get("id") == delta["id"]:
                return call
        if not near or _begins_another(near[-1], delta, numbered=position is not None):
            return None
        return near[-1]

    def in_order(self) -> list[Json]:
        if any(position is None for position, _ in self._slots):
            return [call for _, call in self._slots]
        return [call for _, call in sorted(self._slots, key=lambda slot: slot[0] or 0)]


def _begins_another(last: Json, delta: Json, *, numbered: bool) -> bool:
    """Whether a delta for the place of `last` is a call of its own.

    A call has a name, so a delta without one continues. With a name and an id of its own it is
    another call, except that some servers invent an id for every delta: those are told by the
    position and the name that stay and the arguments that are not finished. Without ids, only
    arguments after finished arguments begin another.
    """
    name, text = _called(delta)
    if not name:
        return False
    last_name, last_text = _called(last)
    finished = "custom" in last or _is_object(last_text)
    if delta.get("id") and last.get("id"):
        return finished or name != last_name or not numbered
    return "custom" not in last and finished and bool(text) and not text.startswith(last_text)


def _called(call: Json) -> tuple[str, str]:
    """The name and the arguments so far, whatever kind of tool it is."""
    for kind, field in (("function", "arguments"), ("custom", "input")):
        if kind in call:
            said = as_dict(call[kind])
            text = plain(said.get(field)) or ""
            return str(said.get("name") or ""), text if isinstance(text, str) else json.dumps(text)
    return "", ""


def _merged_text(key: str, old: object, new: str) -> object:
    if key in _ATOMS:
        if not isinstance(old, str) or new.startswith(old):  # the first, or the same, or grown
            return new
        return old + new if key == "name" and new not in old else old
    if key in _LATEST:
        return new or old or new
    if is_list(old):
        return _merged_list(key, old, [{"type": "text", "text": new}] if new else [])
    if isinstance(old, _Text):
        old.pieces.append(new)
        return old
    return _Arguments(new) if key == "arguments" else _Text(new)


def _merged_list(key: str, old: object, new: list[Any]) -> object:
    if key == "tool_calls":
        calls = old if isinstance(old, _Calls) else _Calls()
        calls.add(new)
        return calls
    items = as_list(old)
    if isinstance(old, _Text) and any(old.pieces):  # a text that goes on as a list of parts
        items = [{"type": "text", "text": old}]
    for item in new:
        same = _continued(key, items, as_dict(item))
        if same is not None:
            merge(same, as_dict(item))
        else:
            items.append(merge({}, item) if is_dict(item) else item)
    return items


def _continued(key: str, items: list[Any], item: Json) -> Json | None:
    """The element that `item` goes on with, by its number or as a part of a text; mostly none."""
    index, kind = item.get("index"), item.get("type")
    if isinstance(index, int):
        near = [old for old in items if is_dict(old) and old.get("index") == index]
        return next((old for old in reversed(near) if not _differ(old, item)), None)
    last = as_dict(items[-1]) if items else {}
    is_text = key in _TEXT_LISTS and kind in _TEXT_PARTS and kind == last.get("type")
    return last if is_text else None


def _differ(old: Json, item: Json) -> bool:
    return any(old.get(k) and item.get(k) and old[k] != item[k] for k in ("type", "id"))


def _is_object(text: str) -> bool:
    try:
        return text.lstrip().startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _last_object(text: str) -> str:
    """The last of the JSON objects that `text` consists of; all of `text` if it is not such."""
    start, decoder = 0, json.JSONDecoder()
    while True:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            return text
        if not is_dict(value):
            return text
        rest = text[end:].lstrip()
        if not rest:
            return text[start:]
        start = len(text) - len(rest)
