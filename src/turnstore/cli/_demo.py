"""`turnstore demo`: two processes, one conversation, and what is left of it in Redis.

It looks at everything that it shows, and fails where something is not as promised.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import signal
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from types import FrameType
from typing import Any, NoReturn
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import redis

from .. import server as servers
from ..conversation import Conversation
from ..errors import TurnstoreError
from ..store import Store
from ..testing import ModelServer, Reply
from . import _talk
from ._process import DemoError, Process
from ._show import time_left, transcript
from ._terminal import Terminal

__all__ = ["demo"]

_NAME, _PREFIX, _ID = "demo", "turnstore-demo", "conv-1"
_TTL = timedelta(minutes=10)
_TOLD, _ASKED, _LEFT = "My name is Ada.", "What is my name?", "Tell me a long story."
_STORY = "There was a lighthouse on a rock, and nobody knew who lit its lamp every evening."
_PIECES_READ = 5
_PAUSE = 0.05  # seconds between two pieces, so that a person sees the stream
_INTERRUPTED, _TERMINATED = 130, 143


def demo(terminal: Terminal, *, cluster: bool) -> int:
    """Run the demo.

    Returns:
        The exit status: 0 if everything was as promised.
    """
    signal.signal(signal.SIGTERM, _terminate)
    try:
        _needed()
        with ExitStack() as stack:
            _run(terminal, stack, cluster=cluster)
    except (DemoError, TurnstoreError, redis.RedisError, RuntimeError, OSError) as error:
        terminal.line()
        terminal.fail(str(error))
        return 1
    except KeyboardInterrupt:
        terminal.line()
        terminal.fail("interrupted; what the demo had made is removed")
        return _INTERRUPTED
    terminal.line()
    terminal.title("All of it was as promised. The key, the servers and their files are removed.")
    return 0


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise SystemExit(_TERMINATED)


def _needed() -> None:
    if importlib.util.find_spec("openai") is None:
        raise DemoError("the demo needs the openai package: pip install '.[demo]' in a clone")


def _run(terminal: Terminal, stack: ExitStack, *, cluster: bool) -> None:
    terminal.title("turnstore: an LLM client that remembers")
    terminal.line()
    url, what = _redis(stack, cluster=cluster)
    model = stack.enter_context(ModelServer(pause=_PAUSE if terminal.live else 0))
    terminal.fact("Redis", what)
    terminal.fact(
        "model",
        "a small local server that speaks the OpenAI API. It knows nothing but the messages "
        "it is sent, so what it remembers comes from turnstore.",
    )
    client = _connected(url, cluster=cluster)
    stack.callback(client.close)
    place: dict[str, Any] = {
        "url": url,
        "cluster": cluster,
        "name": _NAME,
        "prefix": f"{_PREFIX}-{uuid4().hex[:8]}",
        "ttl_seconds": _TTL.total_seconds(),
        "id": _ID,
    }
    # With a client of its own: Ctrl-C may leave the other one with an answer that nobody has read.
    store = Store.from_url(url, cluster=cluster, name=_NAME, prefix=place["prefix"], ttl=_TTL)
    chat = stack.enter_context(store).conversation(_ID)
    stack.enter_context(_removed(chat))
    with Process(place, model.base_url) as first, Process(place, model.base_url) as second:
        _first(terminal, chat, first, model)
        _second(terminal, chat, second, model)
        _abort(terminal, chat, second, model)
    _stored(terminal, chat, client)


def _redis(stack: ExitStack, *, cluster: bool) -> tuple[str, str]:
    """Find the server: its URL, and what to say of it."""
    if url := os.environ.get("REDIS_URL"):
        return url, f"the server at REDIS_URL, {_public(url)}"
    if cluster:
        raise DemoError("--cluster needs REDIS_URL, the URL of a node")
    server = servers.EmbeddedServer()
    stack.enter_context(server)
    return server.url, f"{server.binary.name} at {server.url}, started for this demo"


def _public(url: str) -> str:
    """A URL without its password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _connected(url: str, *, cluster: bool) -> Any:
    kind: Any = redis.RedisCluster if cluster else redis.Redis
    try:
        client = kind.from_url(url)
        client.ping()
    except (redis.RedisError, redis.RedisClusterException, OSError, TypeError, ValueError) as error:
        raise DemoError(f"Redis at {_public(url)} cannot be used: {error}") from error
    return client


@contextmanager
def _removed(chat: Conversation) -> Generator[None, None, None]:
    """Delete the conversation at the end, whatever happens."""
    try:
        yield
    finally:
        # A second Ctrl-C would leave the key behind.
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            chat.clear()
        except TurnstoreError as error:
            message = f"{chat.key} could not be removed; it expires within {time_left(_TTL)}"
            raise DemoError(message) from error
        finally:
            with suppress(ValueError):
                signal.signal(signal.SIGINT, signal.default_int_handler)


def _first(terminal: Terminal, chat: Conversation, process: Process, model: ModelServer) -> None:
    terminal.step(1, "A first process tells the model a name. Its client is wrapped:")
    terminal.line()
    terminal.code(re.sub(r" *# noqa.*", "", inspect.getsource(_talk.ask)))
    terminal.line()
    answer = _speak(terminal, process, _TOLD)
    _must("Ada" in answer, f"the model did not take the name: it said {answer!r}")
    _must(_messages(model) == 1, f"the model was sent {_messages(model)} messages, not 1")
    said = [("user", _TOLD), ("assistant", answer)]
    saved = [(message["role"], message["content"]) for message in chat.read()]
    _must(saved == said, f"the turn was not saved as it was spoken: {saved}")
    terminal.ok(
        "The stream was read to its end, so that question and answer are saved, as one turn."
    )


def _second(terminal: Terminal, chat: Conversation, process: Process, model: ModelServer) -> None:
    terminal.step(2, "Another process asks for it. It sends one message, its own.")
    terminal.line()
    answer = _speak(terminal, process, _ASKED)
    _must("Ada" in answer, f"the second process did not know the name: it was told {answer!r}")
    _must(_messages(model) == 3, f"the model was sent {_messages(model)} messages, not 3")  # noqa: PLR2004 - as it says
    _must(chat.stat().turns == 2, f"there are {chat.stat().turns} turns, not 2")  # noqa: PLR2004 - as it says
    terminal.ok(
        "The model was sent 3 messages: turnstore put the 2 of the first process before it."
    )


def _abort(terminal: Terminal, chat: Conversation, process: Process, model: ModelServer) -> None:
    terminal.step(3, "The same process asks for more, and closes the stream in the middle.")
    terminal.line()
    before = chat.read()
    model.script(Reply(_STORY, pause=_PAUSE if terminal.live else 0))
    answer = _speak(terminal, process, _LEFT, _PIECES_READ)
    _must(_STORY.startswith(answer) and answer != _STORY, f"the stream was not cut: {answer!r}")
    after = chat.read()
    _must(
        (after, after.revision) == (before, before.revision),
        f"the aborted stream left something: revision {after.revision}, was {before.revision}",
    )
    terminal.ok("Nothing of it is stored: no half answer, and no question without an answer.")


def _speak(terminal: Terminal, process: Process, text: str, pieces: int | None = None) -> str:
    terminal.fact("process", str(process.ready()))
    terminal.fact("user", text)
    answer = terminal.speech("model", process.ask(text, pieces))
    if pieces is not None:
        terminal.fact("", "(the stream was closed here)")
    return answer


def _stored(terminal: Terminal, chat: Conversation, client: Any) -> None:
    terminal.step(4, "This is what any process reads now:")
    terminal.line()
    page = chat.turns()
    transcript(page, terminal, indent=3)

    terminal.step(5, "And this is what Redis holds:")
    terminal.line()
    stat = chat.stat()
    # Bytes, also where the URL asks for decoded replies.
    elements = client.execute_command("LRANGE", chat.key, 0, -1, NEVER_DECODE=True)
    sizes = [len(element) for element in elements]
    kind = client.execute_command("TYPE", chat.key, NEVER_DECODE=True).decode()
    terminal.fact("key", chat.key)
    terminal.fact("", "in braces: digests of the store's name and of the conversation's id")
    terminal.fact("type", f"{kind} of {len(sizes)} elements: a head, then one for each turn")
    terminal.fact("sizes", ", ".join(f"{size:,}" for size in sizes) + " bytes")
    if stat.bytes is not None:
        terminal.fact("memory", f"{stat.bytes:,} bytes, by the server's own account")
    terminal.fact("lives for", f"{time_left(stat.ttl)}; the next turn starts it anew")
    terminal.fact("revision", f"{stat.revision}; an append can demand it")
    _must(kind == "list", f"the key is a {kind}, not a list")
    _must(len(sizes) == 1 + len(page), f"{len(sizes)} elements hold {len(page)} turns")
    _must(stat.ttl is not None and stat.ttl <= _TTL, f"it lives for {stat.ttl}, not {_TTL}")
    _must(stat.revision == page.revision, f"revision {stat.revision}, and {page.revision} was read")
    terminal.line()
    terminal.ok("One list, one element a turn, written by one script at a time.")


def _messages(model: ModelServer) -> int:
    """How many messages the model was sent last."""
    return len(model.requests[-1].messages)


def _must(promise: bool, otherwise: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not promise:
        raise DemoError(f"not as promised: {otherwise}")
