"""Google's Gemini API: what a request may hold, and what its replies and streams make.

It knows the JSON of requests and replies, and no SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from turnstore.clients._calling import Answer
from turnstore.clients._deltas import Json, as_dict, as_list, dicts, is_dict, is_list
from turnstore.formats import FORMATS
from turnstore.formats.google import camel, is_empty, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT: Final = "google.contents"
_RULES: Final = FORMATS[FORMAT]

# What would make the provider the keeper of the history, or of a part of the prompt. (`store` says
# what Google logs. Nothing reads it back, so it passes, as OpenAI's does.)
_REFUSED: Final = {
    "cachedContent": "puts contents that the provider keeps before the history, and forbids a "
    "system instruction",
    "previousInteractionId": "leaves the history with the provider",
}

# The finish reasons after which the conversation goes on from the reply.
_GOOD: Final = frozenset({"STOP", "MAX_TOKENS"})


def given(body: Mapping[str, Any]) -> list[Json]:
    """Take the contents out of a request, with the names that the API's own JSON has.

    What belongs together is one content: the chunks of a streamed message, and results.

    Raises:
        TypeError: The contents are no list.
        ValueError: An option of the request does not go with a memory.
    """
    if not is_list(body.get("contents")):
        raise TypeError("turnstore reads the contents of a request only where they are a list")
    refuse(body)
    if is_continued(body):
        does = "goes on with a reply that is no part of this conversation"
        raise ValueError(_conflict("continuationToken", does))
    settings = as_dict(_option(body, "generationConfig"))
    if _option(settings, "candidateCount") not in (None, 1):
        does = "asks for several replies, and a conversation goes on from one"
        raise ValueError(_conflict("candidateCount", does))
    calling = as_dict(_option(as_dict(_option(body, "toolConfig")), "functionCallingConfig"))
    if _option(calling, "streamFunctionCallArguments"):
        does = "sends the arguments of calls in pieces, which could not be sent again"
        raise ValueError(_conflict("streamFunctionCallArguments", does))
    contents: list[Json] = []
    for content in map(_normal, dicts(body.get("contents"))):
        last = contents[-1] if contents else Json()
        if _is_one(last, content):
            contents[-1] = {**last, "parts": together(last["parts"] + content["parts"])}
        else:
            contents.append(content)
    return contents


def refuse(body: Mapping[str, Any]) -> None:
    """Refuse the options with which the provider has a history, too.

    Raises:
        ValueError: There is one.
    """
    for option, does in _REFUSED.items():
        if _option(body, option):
            raise ValueError(_conflict(option, does))


def is_continued(body: Mapping[str, Any]) -> bool:
    """Tell whether a request has a model go on with a reply that it broke off."""
    return bool(_option(body, "continuationToken"))


def results(body: Mapping[str, Any], start: int) -> list[Json]:
    """Take what the caller said out of the contents of a request, from `start` on."""
    contents = map(_normal, dicts(body.get("contents"))[start:])
    return [content for content in contents if not _RULES.is_reply(content)]


def sending(body: Mapping[str, Any], messages: Iterable[Json]) -> Json:
    """Put messages into a request, in place of the caller's.

    Instructions go into `systemInstruction`, behind the caller's own, since the API has no role
    for them. Contents of one role that follow one another become one content: so the roles take
    turns, and all results of calls stand in the one content after them.
    """
    contents: list[Json] = []
    instructions: list[Json] = []
    for message in messages:
        if _RULES.is_instruction(message):
            instructions += message["parts"]
        elif contents and contents[-1]["role"] == message["role"]:
            contents[-1] = {**contents[-1], "parts": contents[-1]["parts"] + message["parts"]}
        else:
            contents.append(message)
    sent = {**body, "contents": contents}
    if instructions:
        own = as_dict(body.get("systemInstruction"))
        sent["systemInstruction"] = {**own, "parts": as_list(own.get("parts")) + instructions}
    return sent


def read(reply: Json) -> Answer:
    """Read the first candidate of a whole reply, the only one there is.

    A text that ended at the limit of tokens was said, and is kept; what else was cut there can
    never be sent again.
    """
    candidate = (dicts(reply.get("candidates")) or [Json()])[0]
    content, reason = as_dict(candidate.get("content")), candidate.get("finishReason")
    blocked = as_dict(reply.get("promptFeedback")).get("blockReason")
    said = [part for part in parts(content) if not part.get("thought") and not is_empty(part)]
    unfit = ""
    if blocked:
        unfit = f"the prompt was blocked: {blocked}"
    elif not reason:
        unfit = "the provider did not say that it was finished"
    elif reason not in _GOOD:
        unfit = f"the finish reason is {reason}"
    elif not said:
        unfit = "the reply is empty"
    elif reason == "MAX_TOKENS" and ("text" not in said[-1] or any(map(_is_call, said))):
        unfit = "the reply was cut at MAX_TOKENS, and not in a text"
    if content.get("role") != "model":  # some proxies leave it out
        content = {**content, "role": "model"}
    return Answer([content], _RULES.about(reply), unfit)


def together(pieces: list[Any]) -> list[Any]:
    """Join texts that were streamed in pieces; a signature stays with the part that it is in."""
    joined: list[Any] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if is_empty(piece):
            continue
        kind = _text_kind(piece)
        if kind is not None and is_dict(last) and kind == _text_kind(last):
            joined[-1] = {**last, "text": last["text"] + piece["text"]}
        else:
            joined.append(piece)
    return joined


class ReplyFolding:
    """The chunks of one reply, folded into the JSON that a request without a stream answers.

    Of several candidates it keeps the first, as the SDK does. A reply that is no stream is its
    only chunk, and stays as it is.
    """

    def __init__(self) -> None:
        self._reply: Json = {}
        self._chunks = 0
        self._candidate: Json = {}
        self._content: Json = {}
        self._parts: list[Any] = []

    def add(self, chunk: Json) -> None:
        """Take the next chunk."""
        self._chunks += 1
        self._reply |= {name: value for name, value in chunk.items() if name != "candidates"}
        found = dicts(chunk.get("candidates"))
        candidate = next((one for one in found if not one.get("index")), Json())
        content = as_dict(candidate.pop("content", None))
        self._candidate |= {name: value for name, value in candidate.items() if value is not None}
        self._content |= content
        self._parts += as_list(content.get("parts"))

    def go_on(self) -> Json:
        """Prepare for the chunks of a further request that goes on with the same reply.

        Returns:
            What was used so far: the next request counts anew.
        """
        self._candidate.pop("finishReason", None)
        return as_dict(self._reply.pop("usageMetadata", None))

    @property
    def complete(self) -> bool:
        """Whether the provider said how the reply ended."""
        return bool(self._candidate.get("finishReason") or self._reply.get("promptFeedback"))

    def reply(self) -> Json:
        """The whole reply."""
        if not self._candidate and not self._content:
            return self._reply
        several = self._chunks > 1
        made = {"parts": together(self._parts) if several else self._parts} if self._parts else {}
        content = {**self._content, **made}
        return {**self._reply, "candidates": [{"content": content, **self._candidate}]}


def _normal(content: Json) -> Json:
    given = as_list(content.get("parts"))
    made = [camel(part) if is_dict(part) else part for part in given]
    return {**content, "role": content.get("role") or "user", "parts": made}


def _is_one(last: Json, content: Json) -> bool:
    if not last or last["role"] != content["role"]:
        return False
    return _RULES.is_reply(content) or bool(_RULES.results(last) and _RULES.results(content))


def _is_call(part: Json) -> bool:
    return "functionCall" in part


def _text_kind(part: Any) -> bool | None:
    """Whether a part is a thought or was said; None if it is more than a text."""
    if not is_dict(part) or not part.keys() <= {"text", "thought"}:
        return None
    return bool(part.get("thought")) if isinstance(part.get("text"), str) else None


def _option(body: Mapping[str, Any], name: str) -> Any:
    """An option of a request: the SDK says some in camelCase, and some in snake_case."""
    if name in body:
        return body[name]
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return body.get(snake)


def _conflict(option: str, does: str) -> str:
    return (
        f"{option} {does}; this client's history comes from turnstore. Leave {option} out, or use "
        f"the client that was wrapped. Nothing was sent"
    )
