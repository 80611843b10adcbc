"""The model server as a test sees it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ._desk import Desk, Request
from ._http import Http
from ._learning import KINDS
from ._replies import Reply

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from ._learning import Kind


class ModelServer:
    """A local server that speaks the APIs of OpenAI, Anthropic and Gemini, plain or streamed.

    It answers chat completions, responses, Anthropic's messages and Gemini's contents.

    It answers from the conversation that it is sent, so a test can tell by the answer what the
    model was told: after "My name is Ada.", "What is my name?" is answered by "Your name is Ada."
    Instructions may tell it so, too, as those do that hold what was recalled. To the default
    prompt of an extraction it answers with facts that it is told so, as JSON. Anything else is
    answered by the number of messages it saw and the last one's text. Its embeddings, of OpenAI's
    `/embeddings` and of Gemini, have 1536 numbers, 3072 for the models that do, or as many as the
    request says; texts are near that share words. They are no requests to the model.

    Requests that a provider refuses for their messages (a tool call without its result, a result
    without its call) are refused with HTTP 400. Scripted replies come first, one for each request
    of their kind.

    Args:
        port: The port on 127.0.0.1; 0 takes a free one.
        pause: Seconds between two chunks of the streams that are not scripted.

    Example:
        >>> from turnstore.testing import ModelServer, Reply
        >>> with ModelServer() as server:
        ...     server.script(Reply.error(500), Reply("Hello!"))
        ...     server.base_url.startswith("http://127.0.0.1:")
        True
    """

    def __init__(self, *, port: int = 0, pause: float = 0) -> None:
        self._port = port
        self._desk = Desk(pause)
        self._http: Http | None = None

    @property
    def requests(self) -> list[Request]:
        """The requests for an answer of the model so far, oldest first."""
        return self._desk.requests

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as `base_url`."""
        return f"{self.url}/v1"

    @property
    def url(self) -> str:
        """What a client of Anthropic or Google takes as `base_url`."""
        if self._http is None:
            raise RuntimeError("the model server is not running: enter it by `with`, or start() it")
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def script(self, *replies: Reply, to: Kind = "chat") -> None:
        """Queue replies: each request takes the next one; without one the server answers itself.

        Args:
            replies: The replies, first to last. A request that the SDK repeats takes one each time.
            to: Which requests take them: "extraction" or "summary", those with the default
                prompt of one; "embedding", those for vectors, which take `Reply.error(…)`, or
                `Reply()` for the vectors themselves, both perhaps with `hold`; "chat", all
                others. So what a memory asks in the background takes no reply from what an
                application asks.

        Raises:
            ValueError: It is to no such requests, or says what no embedder does.
        """
        if to not in KINDS:
            raise ValueError(f"script(to={to!r}): replies are to one of {', '.join(KINDS)}")
        if to == "embedding" and not all(map(_fits_embedder, replies)):
            raise ValueError('script(to="embedding") takes Reply.error(…) and Reply(hold=…)')
        self._desk.script(replies, to)

    def start(self) -> Self:
        """Begin to serve, in a thread of its own.

        Returns:
            The server itself.
        """
        if self._http is None:
            self._http = Http(self._port, self._desk)
            threading.Thread(target=self._http.serve, name="ModelServer", daemon=True).start()
        return self

    def close(self) -> None:
        """Stop, and break what connections are left."""
        if self._http is not None:
            self._http.end()
            self._http = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _fits_embedder(reply: Reply) -> bool:
    """Whether it is an error, or says nothing in the place of the vectors."""
    return reply.status >= 400 or reply == Reply(hold=reply.hold)  # noqa: PLR2004 - HTTP's errors
