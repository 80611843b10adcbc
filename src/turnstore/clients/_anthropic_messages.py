"""Anthropic's Messages API: what a request may hold, and what its replies and streams make.

It knows the JSON of requests and replies, and no SDK.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from turnstore.clients._calling import Answer
from turnstore.clients._deltas import Json, as_dict, dicts, is_list
from turnstore.formats import FORMATS
from turnstore.formats.anthropic import blocks

if TYPE_CHECKING:
    from collections.abc import Mapping

_RULES: Final = FORMATS["anthropic.messages"]

# What would make the provider the keeper of the history, or have it rewrite the history.
_REFUSED: Final = {
    "thread": "leaves the history with the provider",
    "context_management": "has the provider rewrite the history",
    "compaction": "asks for a summary in place of an answer",
}

# The reasons to stop after which the conversation goes on from the reply. After a refusal it does
# not: Anthropic's advice is to take that turn away, or the model goes on refusing.
_GOOD: Final = frozenset({"end_turn", "stop_sequence", "tool_use", "max_tokens", "pause_turn"})


def given(body: Mapping[str, Any]) -> list[Any]:
    """Take the messages out of a request.

    Raises:
        ValueError: An option of the request does not go with a memory.
    """
    refuse(body)
    messages = body.get("messages")
    return [_bare(message) for message in messages] if is_list(messages) else []


def refuse(body: Mapping[str, Any]) -> None:
    """Refuse the options that do not go with a memory.

    Raises:
        ValueError: There is one.
    """
    for option, does in _REFUSED.items():
        if body.get(option):
            raise ValueError(
                f"{option} {does}, and this client's history comes from turnstore; leave {option} "
                f"out, or use the client that was wrapped. Nothing was sent"
            )


def sending(body: Mapping[str, Any], messages: list[Json]) -> Json:
    """Put messages into a request, in place of the caller's.

    What stands before them as system messages goes into the option `system`, which is legal there
    whatever comes after it.
    """
    first = next((n for n, one in enumerate(messages) if not _is_text_of_system(one)), None)
    leading, rest = messages[:first], messages[first:] if first is not None else []
    sent = {**body, "messages": rest}
    if leading:
        system = body.get("system")
        own = blocks({"content": system}) if system else []
        sent["system"] = own + [block for one in leading for block in blocks(one)]
    return sent


def read(reply: Json) -> Answer:
    """Read a whole reply.

    A text that ended at the limit of tokens was said, and is kept; what else was cut there can
    never be sent again.
    """
    content, reason = reply.get("content"), reply.get("stop_reason")
    unfit = ""
    if reason == "refusal":
        unfit = "the model refused"
    elif reason not in _GOOD:
        unfit = f"the stop reason is {reason}"
    elif not content:
        unfit = "the reply is empty"
    elif reason == "max_tokens" and (
        dicts(content)[-1].get("type") != "text" or '"tool_use"' in json.dumps(content)
    ):
        unfit = "the reply was cut at max_tokens, in the middle of a block"
    return Answer([{"role": "assistant", "content": content}], _RULES.about(reply), unfit)


def joined(prefill: Json, message: Json) -> Json:
    """Join the words that the caller put into the model's mouth and what it said after them."""
    begun, said = list(blocks(prefill)), list(blocks(message))
    last, first = as_dict(begun[-1] if begun else None), as_dict(said[0] if said else None)
    if last.get("type") == first.get("type") == "text":
        begun[-1:] = []
        said[:1] = [{**last, **first, "text": last["text"] + first["text"]}]
    return {**message, "content": begun + said}


class MessageFolding:
    """The events of one message, folded into the JSON that an unstreamed call answers."""

    def __init__(self) -> None:
        self._message: Json = {}
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, str] = {}
        self._ended = False

    def add(self, event: Json) -> None:
        """Take the next event; an event of no known type adds nothing."""
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start":
            self._message = dict(as_dict(event.get("message")))
            for number, block in enumerate(dicts(self._message.get("content"))):
                self._blocks[number] = block
        elif kind == "content_block_start" and isinstance(index, int):
            self._blocks[index] = dict(as_dict(event.get("content_block")))
        elif kind == "content_block_delta" and index in self._blocks:
            self._add_delta(index, as_dict(event.get("delta")))
        elif kind == "message_delta":
            usage = as_dict(self._message.get("usage")) | as_dict(event.get("usage"))
            self._message |= as_dict(event.get("delta")) | {"usage": usage}
        elif kind == "message_stop":
            self._ended = True

    def _add_delta(self, index: int, delta: Json) -> None:
        block = self._blocks[index]
        kind = delta.pop("type", None)
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + str(delta.get("partial_json", ""))
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        elif kind in ("text_delta", "thinking_delta"):
            for name, value in delta.items():
                old = block.get(name)
                if isinstance(old, str) and isinstance(value, str):
                    block[name] = old + value
                else:
                    block[name] = value
        else:  # a signature, a compaction: they come at once
            block |= delta

    @property
    def complete(self) -> bool:
        """Whether the provider ended the message."""
        return self._ended

    def reply(self) -> Json:
        """The whole message, its blocks in the provider's order."""
        for index, text in self._inputs.items():
            if text:
                try:
                    self._blocks[index]["input"] = json.loads(text)
                except ValueError:  # cut off; the stop reason says so
                    self._blocks[index]["input"] = text
        content = [self._blocks[index] for index in sorted(self._blocks)]
        return {**self._message, "content": content}


def _bare(message: Any) -> Any:
    # The SDK's Message as a message: its id, model, usage and the like are refused by the API.
    if isinstance(message, dict) and "stop_reason" in message:
        return {"role": message.get("role"), "content": message.get("content")}
    return message


def _is_text_of_system(message: Json) -> bool:
    return message.get("role") == "system" and all(
        as_dict(block).get("type") == "text" for block in blocks(message)
    )
