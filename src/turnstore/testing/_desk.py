"""What the model server knows: the script, the requests so far, the responses it gave."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from ._replies import Json, Reply

if TYPE_CHECKING:
    from collections.abc import Callable


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


class Desk:
    """The one place that the threads of the server share; each of its steps is atomic.

    Args:
        pause: Seconds between two chunks of the streams that are not scripted.
    """

    def __init__(self, pause: float) -> None:
        self.requests: list[Request] = []
        self.script: deque[Reply] = deque()
        self.responses: dict[str, Json] = {}
        self._pause = pause
        self._numbers = count(1)  # the length of `requests` may be the same in two threads

    def take(
        self,
        request: Request,
        complaint: Callable[[list[Json]], str | None],
        answer: Callable[[list[Json]], str],
    ) -> tuple[Reply, int]:
        """Note a request; give the reply to it and its number.

        Args:
            request: The request.
            complaint: What the provider refuses such messages for; None if it takes them.
            answer: What the model says by itself.
        """
        self.requests.append(request)
        number = next(self._numbers)
        try:
            return self.script.popleft(), number
        except IndexError:
            refused = complaint(request.messages)
            if refused:
                return Reply.error(400, refused), number
            return Reply(answer(request.messages), pause=self._pause), number
