"""Fold what LiteLLM streams, and tell what the provider said from what LiteLLM made up.

Where a provider's stream ends without a finish reason, some of LiteLLM's streams end with one
nevertheless, "stop". The objects that the chunks came through know whether there was one.
"""

from __future__ import annotations

from types import AsyncGeneratorType, GeneratorType
from typing import TYPE_CHECKING, Any, Final

from litellm import CustomStreamWrapper, ModelResponseStream
from litellm.responses.streaming_iterator import (  # pyright: ignore[reportMissingTypeStubs]  # typed
    BaseResponsesAPIStreamingIterator,
)

from turnstore import _json
from turnstore.clients._deltas import Json, as_dict, as_list, dicts
from turnstore.clients._folding import ChatFolding, ResponseFolding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PASSES_ON: Final = (
    CustomStreamWrapper,
    BaseResponsesAPIStreamingIterator,
    GeneratorType,
    AsyncGeneratorType,
)

# Fields of a chunk that are the same in each of a stream.
_HEAD: Final = frozenset({"id", "created", "model", "object", "system_fingerprint", "choices"})

# Fields of a delta whose elements come whole: nothing in them goes on with what came before.
_WHOLE: Final = ("reasoning_items", "annotations", "images")


class ChunkFolding:
    """The chunks of a chat completion."""

    def __init__(self) -> None:
        self._folding = ChatFolding()
        self._blocks: list[Json] = []
        self._fields: Json = {}
        self._whole: dict[str, list[Any]] = {}
        self._word = ""
        self._begun = False

    def take(self, chunk: Any, stream: object) -> None:
        """Take the next chunk, as an object; `stream` is where it came from."""
        if chunk is not None:  # the Router says that where a fallback has nothing to say
            text = _text_alone(chunk) if self._begun else None
            if text is None:
                self.add(chunk.model_dump(exclude_unset=True, warnings=False))
            else:  # as most are: nothing in it but the text goes on
                self._folding.add({"choices": [{"index": 0, "delta": {"content": text}}]})
            self._begun = True
        if self._folding.complete and not self._word:
            self._word = finish_reason(stream) or ""

    def add(self, chunk: Mapping[str, Any], /) -> None:
        """Take the next chunk, as JSON; what LiteLLM streams in its own way is folded here."""
        for choice in as_list(chunk.get("choices")):
            delta = as_dict(as_dict(choice).get("delta"))
            for name in _WHOLE:
                if elements := as_list(delta.pop(name, None)):
                    self._whole.setdefault(name, []).extend(elements)
            for block in dicts(delta.pop("thinking_blocks", None)):
                self._add_block(block)
            self._add_fields(as_dict(delta.pop("provider_specific_fields", None)))
        self._folding.add(chunk)

    def _add_block(self, block: Json) -> None:
        """Add a piece of a thought to the one that it goes on with.

        Pieces of one have the same position. Without positions, a thought ends with what its
        provider signed it with, and one that is redacted comes at once.
        """
        last = self._blocks[-1] if self._blocks else {}
        same = "index" in block and block["index"] == last.get("index")
        goes_on = same or ("index" not in block and not last.get("signature"))
        if block.get("type") != "thinking" or last.get("type") != "thinking" or not goes_on:
            self._blocks.append({"thinking": "", **block} if "data" not in block else block)
            return
        said = block.get("thinking") or ""
        if block.get("signature"):
            last["signature"] = block["signature"]
            said = "" if said == last["thinking"] else said  # some say all of it once more
        last["thinking"] += said

    def _add_fields(self, fields: Json) -> None:
        """Renew fields of the provider: as LiteLLM has it, the latest says all that came before.

        Its citations come one by one; and thoughts come here a second time.
        """
        for name, value in fields.items():
            if name == "citation":
                self._fields.setdefault("citations", [[]])[0].append(value)
            elif name != "thinking_blocks":
                self._fields[name] = value

    @property
    def complete(self) -> bool:
        """Whether the provider finished, and said so itself."""
        return self._folding.complete and bool(self._word)

    def reply(self) -> Json:
        """The chat completion, as the same call would have answered unstreamed."""
        reply = self._folding.reply()
        blocks = [{n: value for n, value in one.items() if n != "index"} for one in self._blocks]
        more = {"thinking_blocks": blocks, **self._whole, "provider_specific_fields": self._fields}
        for choice in reply["choices"]:
            choice["message"] |= {name: value for name, value in more.items() if value}
            choice["provider_specific_fields"] = {"native_finish_reason": self._word}
        return reply


class EventFolding:
    """The events of a response.

    Attributes:
        response: The newest state of the response, as an object of LiteLLM.
    """

    def __init__(self) -> None:
        self.response: object = None
        self._folding = ResponseFolding()
        self._word: str | None = None

    def take(self, event: Any, stream: object) -> None:
        """Take the next event, as an object; `stream` is where it came from."""
        response = getattr(event, "response", None)
        if response is not None:
            self.response = response
        if response is not None or hasattr(event, "item") or event.type == "error":
            self.add(_json.plain(event))
        if self._folding.complete and self._word is None:
            self._word = finish_reason(stream)

    def add(self, event: Mapping[str, Any], /) -> None:
        """Take the next event, as JSON."""
        self._folding.add(event)

    @property
    def complete(self) -> bool:
        """Whether the response was completed, and not by LiteLLM alone."""
        return self._folding.complete and self._word is not None

    def reply(self) -> Json:
        """The whole response."""
        return self._folding.reply()


def _text_alone(chunk: Any) -> str | None:
    """Give the text of a chunk that says nothing else; None for any other.

    To look into it takes a small part of what its JSON takes.
    """
    if type(chunk) is not ModelResponseStream or not _said(chunk).keys() <= _HEAD:
        return None
    choice = _said(chunk.choices[0]) if len(chunk.choices) == 1 else {}
    if choice.keys() != {"index", "delta"} or choice["index"] != 0:
        return None
    delta = _said(choice["delta"])
    text = delta.get("content")
    return text if len(delta) == 1 and isinstance(text, str) else None


def _said(model: Any) -> Json:
    """The fields of an object that are not null."""
    fields = {**vars(model), **(model.model_extra or {})}
    return {name: value for name, value in fields.items() if value is not None}


def finish_reason(stream: object) -> str | None:
    """Give the provider's own finish reason, in a stream to which LiteLLM gave one.

    Returns:
        None if it is LiteLLM's alone; an empty text where no chat stream is to be found below, as
        below a response whose provider has responses of its own.
    """
    chats = 0
    for one in _below(stream):
        if isinstance(one, CustomStreamWrapper):
            chats += 1
            reason = one.received_finish_reason or one.intermittent_finish_reason
            if reason or getattr(one, "is_mock", False):  # LiteLLM's own, which are whole
                return str(reason or "stop")
    return None if chats else ""


def _below(stream: object) -> Iterator[object]:
    """Go through a stream and those that it passes on, as the Router's generators do."""
    waiting, seen = [stream], set[int]()
    while waiting:
        one = waiting.pop()
        seen.add(id(one))
        yield one
        held = _held(one)
        waiting += [v for v in held if isinstance(v, _PASSES_ON) and id(v) not in seen]


def _held(one: object) -> list[object]:
    frame: Any = None
    if isinstance(one, GeneratorType):
        frame = one.gi_frame
    elif isinstance(one, AsyncGeneratorType):
        frame = one.ag_frame
    else:
        return list(getattr(one, "__dict__", {}).values())
    return [] if frame is None else list(frame.f_locals.values())
