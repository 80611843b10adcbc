"""Fold a streamed reply into the JSON that the same call would have answered unstreamed.

No SDK is imported: chunks and events come in as the dicts that the provider sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnstore.clients._deltas import Json, as_dict, dicts, is_dict, is_list, merge, plain

if TYPE_CHECKING:
    from collections.abc import Mapping


class ChatFolding:
    """The chunks of one chat completion, folded as they arrive."""

    def __init__(self) -> None:
        self._head: Json = {}
        self._choices: dict[int, Json] = {}
        self._messages: dict[int, Json] = {}
        self._failed = False

    def add(self, chunk: Mapping[str, object]) -> None:
        """Take the next chunk; a chunk of no known shape adds nothing."""
        self._failed = self._failed or bool(chunk.get("error"))
        _renew(self._head, {key: value for key, value in chunk.items() if key != "choices"})
        for position, choice in enumerate(dicts(chunk.get("choices"))):
            index = choice.pop("index", None)
            self._add_choice(index if isinstance(index, int) else position, choice)

    def _add_choice(self, index: int, choice: Json) -> None:
        delta, whole = choice.pop("delta", None), choice.pop("message", None)
        message = self._messages.setdefault(index, {})
        if is_dict(delta):
            merge(message, delta)
        elif is_dict(whole):  # some servers send the message at once, in place of a delta
            self._messages[index] = merge({}, whole)
        kept = self._choices.setdefault(index, {"index": index})
        # What stands beside the delta: log probabilities, a filter's results.
        _renew(kept, {key: _extended(kept.get(key), value) for key, value in choice.items()})

    @property
    def complete(self) -> bool:
        """Whether the provider finished every choice, said why, and reported no error."""
        finished = [choice.get("finish_reason") for choice in self._choices.values()]
        return bool(finished) and all(finished) and not self._failed

    def reply(self) -> Json:
        """The chat completion: choices in the provider's order, each with its whole message."""
        choices = [
            {**self._choices[index], "message": _message(self._messages[index])}
            for index in sorted(self._choices)
        ]
        return {**self._head, "object": "chat.completion", "choices": choices}


class ResponseFolding:
    """The events of one response; the last of them carries it whole."""

    def __init__(self) -> None:
        self._response: Json = {}
        self._items: dict[int, object] = {}
        self._completed = False

    def add(self, event: Mapping[str, object]) -> None:
        """Take the next event."""
        kind = event.get("type")
        if kind == "response.output_item.done":
            index = event.get("output_index")
            self._items[index if isinstance(index, int) else len(self._items)] = event.get("item")
        elif kind == "error":
            self._completed = False
        elif isinstance(event.get("response"), dict):
            self._response = as_dict(event["response"])
            self._completed = kind == "response.completed"

    @property
    def complete(self) -> bool:
        """Whether `response.completed` came; a failed or an incomplete response has none."""
        return self._completed

    def reply(self) -> Json:
        """The response as `response.completed` gave it.

        Some providers leave its output out there; then it is made of the items that were reported
        as done. Their first versions (`response.output_item.added`) are never used: encrypted
        reasoning may still be partial in them.
        """
        if self._response.get("output") or not self._items:
            return self._response
        return {**self._response, "output": [self._items[index] for index in sorted(self._items)]}


def _message(folded: Json) -> Json:
    message: Json = {"role": None, **as_dict(plain(folded))}
    message["role"] = message["role"] or "assistant"
    if message.get("tool_calls") == []:  # no calls, said by a list that no server takes back
        del message["tool_calls"]
    if not any(message.get(key) for key in ("tool_calls", "function_call", "audio")):
        message.setdefault("content", "")
    return message


def _renew(into: Json, new: Json) -> None:
    """Take the newest value of each key; null and an empty text say nothing."""
    for key, value in new.items():
        if value not in (None, "") or key not in into:
            into[key] = value


def _extended(old: object, new: object) -> object:
    """What `old` and `new` say together: lists grow, anything else is renewed."""
    if is_list(old) and is_list(new):
        return [*old, *new]
    if not is_dict(old) or not is_dict(new):
        return new
    both = dict(old)
    _renew(both, {key: _extended(old.get(key), value) for key, value in new.items()})
    return both
