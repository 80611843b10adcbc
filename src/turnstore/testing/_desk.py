"""What the model server knows: the script, the requests so far, the responses it gave."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from ._answers import text_of
from ._learning import KINDS, Kind, kind_of
from ._replies import Json, Reply, as_dict, dicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True)
class Request:
    """A request that the server got.

    Attributes:
        path: Its path, such as `/v1/chat/completions` or `/v1beta/models/m:generateContent`.
        headers: Its headers, their names in lower case.
        body: Its JSON.
    """

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def messages(self) -> list[Json]:
        """What the model was sent: messages, the items of a response's input, or contents."""
        for field in ("messages", "contents"):
            if field in self.body:
                return list(self.body[field])
        given = self.body.get("input", [])
        return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)

    @property
    def instructions(self) -> str:
        """The text of the instructions that stand beside the messages; empty without any.

        They are a response's `instructions`, Anthropic's `system` and Gemini's
        `systemInstruction`; chat completions have theirs among the messages.
        """
        for field in ("instructions", "system", "systemInstruction"):
            given = self.body.get(field)
            if isinstance(given, str):
                return given
            blocks = as_dict(given).get("parts", given)
            if texts := [block.get("text", "") for block in dicts(blocks)]:
                return "\n".join(texts)
        return ""


class Desk:
    """The one place that the threads of the server share; each of its steps is atomic.

    Args:
        pause: Seconds between two chunks of the streams that are not scripted.
    """

    def __init__(self, pause: float) -> None:
        self.requests: list[Request] = []
        self._script: dict[Kind, deque[Reply]] = {kind: deque() for kind in KINDS}
        self.responses: dict[str, Json] = {}
        self._pause = pause
        self._numbers = count(1)  # the length of `requests` may be the same in two threads

    @property
    def left(self) -> int:
        """How many scripted replies no request has taken yet."""
        return sum(map(len, self._script.values()))

    def script(self, replies: Iterable[Reply], kind: Kind) -> None:
        """Queue replies to requests of this kind."""
        self._script[kind].extend(replies)

    def scripted(self, kind: Kind) -> Reply | None:
        """Take the next scripted reply to requests of this kind; None where there is none."""
        try:
            return self._script[kind].popleft()
        except IndexError:
            return None

    def take(
        self,
        request: Request,
        complaint: Callable[[list[Json]], str | None],
        answer: Callable[[list[Json], str], str],
    ) -> tuple[Reply, int]:
        """Note a request; give the reply to it and its number.

        Args:
            request: The request.
            complaint: What the provider refuses such messages for; None if it takes them.
            answer: What the model says by itself to messages and instructions.
        """
        self.requests.append(request)
        number = next(self._numbers)
        asked = text_of(request.messages[-1]) if request.messages else ""
        if (reply := self.scripted(kind_of(asked))) is not None:
            return reply, number
        if refused := complaint(request.messages):
            return Reply.error(400, refused), number
        text = answer(request.messages, request.instructions)
        return Reply(text, pause=self._pause), number
