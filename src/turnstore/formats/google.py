"""The format of Google's Gemini API: contents."""

from __future__ import annotations

import base64
from collections import Counter
from typing import Any

from ._format import Format, Message
from .replies import field, known

__all__ = ["GoogleContents", "camel", "is_empty", "parts"]

# What a part says. All else in it is about that: signatures, metadata, what is not known yet.
_SAID = (
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
)
_ROLES = {"assistant": "model"}


class GoogleContents(Format):
    """Contents of parts, by `user` or by `model`: a `functionCall` is the model's.

    The JSON is that of the REST API, with names such as `thoughtSignature`; parts are kept as
    they came. A call need not have an id, and where it has one, a result need not repeat it: the
    API wants the results of a content with calls in the content after it, one for each. So a call
    and its result are known by the function's name, and by how often it came before in the same
    content. Tools that the provider runs itself have parts of other kinds: nobody answers them.

    The API has no role for instructions: a message with the role `system` is what a client puts
    into `systemInstruction`.
    """

    user_first = True

    def _message(self, role: str, text: str) -> Message:
        return {"role": _ROLES.get(role, role), "parts": [{"text": text}]}

    def unpacked(self, item: Any) -> Any:
        # An SDK's Content holds bytes where JSON has them in base64.
        return _dumped(item) if hasattr(item, "parts") else item

    def check(self, message: Message) -> None:
        role = message.get("role")
        if not isinstance(role, str) or not role or not isinstance(message.get("parts"), list):
            msg = f"a message of {self.name} has a role and a list of parts; found {list(message)}"
            raise ValueError(msg)

    def is_reply(self, message: Message) -> bool:
        return message.get("role") == "model"

    def calls(self, message: Message) -> list[str]:
        if not self.is_reply(message):
            return []
        return _numbered(message, "functionCall", "function_call")

    def results(self, message: Message) -> list[str]:
        if self.is_reply(message):
            return []
        return _numbered(message, "functionResponse", "function_response")

    def outgoing(self, message: Message) -> Message:
        # The model may answer with a text that is empty, which the API does not take back.
        said = [part for part in message["parts"] if not is_empty(part)]
        return message if len(said) in (0, len(message["parts"])) else {**message, "parts": said}

    def answer(self, reply: Any) -> Any:
        candidates = getattr(reply, "candidates", None)
        return candidates[0].content if candidates else reply

    def about(self, reply: Any) -> Message:
        candidates = field(reply, "candidates")
        if not isinstance(candidates, list):
            return {}
        reason = field(candidates[0], "finishReason", "finish_reason") if candidates else None
        return known(
            model=field(reply, "modelVersion", "model_version"),
            finish_reason=reason,
            usage=_dumped(field(reply, "usageMetadata", "usage_metadata")),
            response_id=field(reply, "responseId", "response_id"),
        )

    def comparable(self, message: Message) -> Message:
        # An SDK gives a message back without what it does not know, and with base64 of another
        # alphabet; a stream gives its text in pieces; callers leave out what was only thought.
        said: list[Any] = []
        for part in map(camel, parts(message)):
            if part.get("thought") or is_empty(part):
                continue
            kept = {name: _comparable(part[name]) for name in _SAID if name in part}
            if kept.keys() == {"text"} and said and said[-1].keys() == {"text"}:
                said[-1] = {"text": f"{said[-1]['text']}{kept['text']}"}
            else:
                said.append(kept)
        return {"role": message.get("role"), "parts": said}

    def text(self, message: Message) -> str:
        texts = (part.get("text") for part in parts(message) if not part.get("thought"))
        return "".join(text for text in texts if isinstance(text, str))


def parts(message: Message) -> list[Message]:
    """Give the parts of a message; what is no object is none."""
    found = message.get("parts")
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def camel(part: Message) -> Message:
    """Give a part with the names that the API's JSON has; it may also be asked in snake_case.

    What is the caller's own (arguments, results, metadata) stays as it is.
    """
    return {
        _camel(name): {_camel(inner): item for inner, item in value.items()}
        if isinstance(value, dict) and _camel(name) != "partMetadata"
        else value
        for name, value in part.items()
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _numbered(message: Message, kind: str, other_name: str) -> list[str]:
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for part in parts(message):
        called = part.get(kind, part.get(other_name))
        if isinstance(called, dict):
            name = str(called.get("name"))
            seen[name] += 1
            keys.append(f"{name}#{seen[name]}")
    return keys


def is_empty(part: Any) -> bool:
    """Tell whether a part says nothing at all, which the API does not take."""
    return isinstance(part, dict) and part.keys() <= {"text", "thought"} and not part.get("text")


def _comparable(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    bare = {name: item for name, item in value.items() if name != "id"}
    if isinstance(data := bare.get("data"), str):
        bare["data"] = data.replace("-", "+").replace("_", "/").rstrip("=")
    return bare


def _dumped(value: Any) -> Any:
    if not hasattr(value, "model_dump"):
        return value
    return _without_bytes(value.model_dump(by_alias=True, exclude_none=True))


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _without_bytes(item) for name, item in value.items()}
    return [_without_bytes(item) for item in value] if isinstance(value, list) else value
