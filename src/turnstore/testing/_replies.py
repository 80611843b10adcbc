"""What a test tells the model server to answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import Event

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool call in a reply.

    Attributes:
        name: The tool's name.
        arguments: Its arguments, or the text that stands for them.
        id: The call's id; the server makes one if it is None. (Gemini's has none then.)
        custom: Whether it is a custom tool, whose input is free text.
    """

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None
    custom: bool = False

    @property
    def text(self) -> str:
        """The arguments as the model writes them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Reply:
    """One scripted answer, to a plain request or to a streaming one.

    Attributes:
        text: What the model says.
        tool_calls: The tools that it calls.
        refusal: What it says in refusing; then there is no text.
        fields: Further fields of its message, such as `reasoning_content`; of Gemini's content.
        finish: The finish reason, `stop` or `tool_calls` if None. Of a Responses request, the
            reasons `length` and `content_filter` make an incomplete response, `failed` makes a
            failed one, and `error` ends a stream by an error event. Anthropic's stop reasons and
            Gemini's finish reasons are taken as they are, and made of OpenAI's.
        status: The HTTP status; from 400 on, the answer is an error with the text as message.
        headers: Further headers of the answer.
        ending: `complete`; or `truncated`, which ends without the marks that say it is complete;
            or `cut`, which breaks the connection there. A plain answer breaks in its middle.
        pause: Seconds between two chunks of a stream.
        hold: An event that the answer waits for: a stream after its first text, a plain answer
            before anything.
        body: Sent as it is, in place of a plain answer made of the above.
        events: Sent as they are, all of them, in place of a stream made of the above.
    """

    text: str | None = None
    tool_calls: Sequence[ToolCall] = field(default=(), kw_only=True)
    refusal: str | None = field(default=None, kw_only=True)
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any], kw_only=True)
    finish: str | None = field(default=None, kw_only=True)
    status: int = field(default=200, kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], kw_only=True)
    ending: Literal["complete", "truncated", "cut"] = field(default="complete", kw_only=True)
    pause: float = field(default=0, kw_only=True)
    hold: Event | None = field(default=None, kw_only=True)
    body: Mapping[str, Any] | None = field(default=None, kw_only=True)
    events: Sequence[Mapping[str, Any]] | None = field(default=None, kw_only=True)

    @classmethod
    def tool_call(cls, name: str, /, **arguments: object) -> Reply:
        """Make a reply that calls one tool.

        Args:
            name: The tool's name.
            arguments: Its arguments.
        """
        return cls(tool_calls=[ToolCall(name=name, arguments=arguments)])

    @classmethod
    def error(cls, status: int, message: str = "scripted error") -> Reply:
        """Make a reply that is an HTTP error; the SDK repeats at once after 429 and from 500 on.

        Args:
            status: The HTTP status.
            message: What the provider says of it.
        """
        return cls(message, status=status, headers={"retry-after-ms": "1"})

    @property
    def finish_reason(self) -> str:
        """The finish reason, as a chat completion has it."""
        return self.finish or ("tool_calls" if self.tool_calls else "stop")


def pieces(text: str) -> list[str]:
    """Cut a text into the pieces in which it is streamed: words, each with its blank before it."""
    words = text.split(" ")
    return [word if n == 0 else f" {word}" for n, word in enumerate(words)]


def halves(text: str) -> list[str]:
    """Cut the arguments of a tool call in two."""
    middle = (len(text) + 1) // 2
    return [text[:middle], text[middle:]]


def as_dict(value: object) -> Json:
    """The value if it is a JSON object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def dicts(value: object) -> list[Json]:
    """The objects in a JSON array; none if it is no array."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Json", item) for item in items if isinstance(item, dict)]
