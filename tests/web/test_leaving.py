"""Who leaves while nothing can be sent to them: the guides end the call of the model at once.

A browser that does not read holds up its server, which then stands in `send` and in no generator.
Such a generator is closed when Python finds that nobody has it any more, which may be never:
nothing is collected here.
"""

from __future__ import annotations

import asyncio
import gc
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from django.core.handlers.asgi import ASGIHandler
from starlette.requests import ClientDisconnect

from tests.waiting import wait_until_async
from tests.web.guides import code_of, left
from tests.web.running import SECONDS
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, MutableMapping
    from types import ModuleType

    from turnstore.server import EmbeddedServer

Message: TypeAlias = "MutableMapping[str, Any]"
START, BODY = "http.response.start", "http.response.body"
# Django reads nothing of what it streams before the start was sent: nothing can close it there.
PLACES = [("fastapi", START), ("fastapi", BODY), ("starlette", START), ("starlette", BODY)]
PLACES += [("fastapi-recall", START), ("fastapi-recall", BODY), ("django", BODY)]
# What comes of sending to who has left, alone or from a group of tasks.
HAS_LEFT = (OSError, ClientDisconnect)


class Browser:
    """Asks, takes what comes up to a message of this type, and leaves.

    Args:
        at: The type.
        raises: Whether sending to who has left is an error, as since version 2.4 of ASGI; else
            the application has to ask.
    """

    def __init__(self, at: str, *, raises: bool) -> None:
        self._at = at
        self._raises = raises
        self._body = json.dumps({"text": "Never end."}).encode()
        self._asked = False
        self.holds_up = asyncio.Event()
        self.leaves = asyncio.Event()

    def scope(self, path: str, state: dict[str, Any]) -> Message:
        """Say what is asked."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4" if self._raises else "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [
                (b"x-user", b"ada"),
                (b"content-type", b"application/json"),
                (b"content-length", str(len(self._body)).encode()),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            "state": state,
        }

    async def receive(self) -> Message:
        if self._asked:
            await self.leaves.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == self._at:
            self.holds_up.set()
            await (self.leaves if self._raises else asyncio.Event()).wait()
            raise OSError("the browser has left")


@pytest.fixture
def nothing_is_collected() -> Iterator[None]:
    """Let what has no owner any more stay where it is, if it is part of a cycle."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Give a model that nobody else asks."""
    with ModelServer() as model:
        yield model


@pytest.fixture
def guide(
    request: pytest.FixtureRequest,
    django_urls: ModuleType,
    redis: EmbeddedServer,
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> ModuleType:
    """Give the module in a guide."""
    monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed")
    monkeypatch.setenv("NO_PROXY", "*")
    exec(code_of(request.param, redis.url, "leaving"), vars(django_urls))  # noqa: S102 - our own page
    return django_urls


@asynccontextmanager
async def served(guide: ModuleType) -> AsyncIterator[tuple[Any, str, dict[str, Any]]]:
    """Give the application of a guide, the path that streams, and the state of its server."""
    if hasattr(guide, "lifespan"):
        async with guide.lifespan(guide.app) as state:
            yield guide.app, "/chats/7" if hasattr(guide, "begun") else "/stream", state
        return
    yield ASGIHandler(), "/astream", {}
    guide.store.close()
    guide.openai.close()
    await guide.async_store.close()
    await guide.async_openai.close()


@pytest.mark.usefixtures("nothing_is_collected")
@pytest.mark.parametrize("raises", [False, True], ids=["asked", "raises"])
@pytest.mark.parametrize("guide, at", PLACES, indirect=["guide"])
def test_the_call_of_the_model_ends_at_once(
    guide: ModuleType, at: str, model: ModelServer, *, raises: bool
) -> None:
    async def leave() -> None:
        browser = Browser(at, raises=raises)
        async with served(guide) as (app, path, state):
            asking = asyncio.create_task(
                app(browser.scope(path, state), browser.receive, browser.send)
            )
            await asyncio.wait_for(browser.holds_up.wait(), SECONDS)
            assert len(model.requests) == 1
            assert not left(model)
            browser.leaves.set()
            await asyncio.wait([asking], timeout=SECONDS)
            await wait_until_async(lambda: left(model), seconds=SECONDS)
            told = pytest.RaisesGroup(pytest.RaisesExc(HAS_LEFT), allow_unwrapped=True)
            with told if raises else nullcontext():
                asking.result()

    model.script(Reply("word " * 10_000, pause=0.02))
    with ThreadPoolExecutor(1) as thread:  # where no loop runs; in this one, the browser's may
        thread.submit(asyncio.run, leave()).result()
