"""The applications of the guides, under the servers that they are for, and with two workers."""

from __future__ import annotations

import re
import socket
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.waiting import wait_until
from tests.web.running import PYTHON, ROOT, SECONDS, Application, application
from turnstore import Store
from turnstore.server import free_port
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from turnstore.server import EmbeddedServer

_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_UVICORN = [*PYTHON, "-m", "uvicorn", "--workers", "2", "--port"]
# gunicorn itself leaves sockets and files to the end of the process.
_GUNICORN = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind"]
_PROJECT = """
from django.conf import settings
settings.configure(ROOT_URLCONF="guide", ALLOWED_HOSTS=["*"], SECRET_KEY="of this test")
from django.core.{kind} import get_{kind}_application
app = get_{kind}_application()
"""


@dataclass(frozen=True)
class Case:
    """A guide and a server.

    Attributes:
        guide: The page.
        server: The command line, up to the port.
        kind: For Django, whether it is `wsgi` or `asgi`.
        stream: The path that streams.
    """

    guide: str
    server: list[str]
    kind: str = ""
    stream: str = "/stream"

    @property
    def notices(self) -> bool:
        """Whether it notices that a client has left while the model says nothing."""
        return self.server is _UVICORN

    def __str__(self) -> str:
        return f"{self.guide}-{'uvicorn' if self.notices else 'gunicorn-preload'}"


CASES = [
    Case("fastapi", _UVICORN),
    Case("starlette", _UVICORN),
    Case("django", _UVICORN, "asgi", "/astream"),
    Case("django", _GUNICORN, "wsgi"),
    Case("flask", _GUNICORN),
]


@dataclass
class Shop:
    """A running application of a guide."""

    case: Case
    app: Application
    model: ModelServer
    store: Store

    def stream(self, client: httpx2.Client, text: str) -> Any:
        return client.stream(
            "POST",
            f"{self.app.url}{self.case.stream}",
            json={"text": text},
            headers={"X-User": "ada"},
        )

    def said(self) -> list[str]:
        chat = self.store.conversation("support", owner="ada")
        return [message["content"] for message in chat.read()]


@pytest.fixture(params=CASES, ids=str)
def shop(request: pytest.FixtureRequest, redis: EmbeddedServer, tmp_path: Path) -> Iterator[Shop]:
    case: Case = request.param
    text = (ROOT / f"docs/guides/web/{case.guide}.md").read_text()
    blocks = [block for block in _BLOCK.findall(text) if "#>" not in block]
    name = f"guide-{request.node.name}"
    code = (
        "\n".join(blocks)
        .replace("redis://localhost:6379", redis.url)
        .replace('"shop"', f'"{name}"')
    )
    (tmp_path / "guide.py").write_text(code)
    (tmp_path / "main.py").write_text(
        _PROJECT.format(kind=case.kind) if case.kind else "from guide import app"
    )
    port = free_port()
    address = str(port) if case.server is _UVICORN else f"127.0.0.1:{port}"
    with ExitStack() as stack:
        model = stack.enter_context(ModelServer())
        store = stack.enter_context(Store.from_url(redis.url, name=name))
        app = stack.enter_context(
            application(
                [*case.server, address, "main:app"],
                f"http://127.0.0.1:{port}",
                tmp_path / "log",
                cwd=tmp_path,
                OPENAI_BASE_URL=model.base_url,
                OPENAI_API_KEY="none-is-needed",
            )
        )
        yield Shop(case, app, model, store)
        said = app.log.read_text()
        assert "Traceback" not in said, said


def left(model: ModelServer) -> bool:
    """Say whether no client waits for the model: the answer that it is at has nobody any more."""
    assert model._http is not None
    return all(_is_left(connection) for connection in list(model._http.open))


def _is_left(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:  # closed on this side too
        return True


def lines(response: httpx2.Response) -> Iterator[str]:
    return (line for line in response.iter_lines() if line)


def test_its_application_does_what_it_says(shop: Shop, hold: threading.Event) -> None:
    with httpx2.Client(timeout=SECONDS) as client:
        # Who leaves ends the call of the model, and nothing is stored.
        held = threading.Event()
        shop.model.script(Reply("word " * 10_000, hold=held, pause=0.02))
        with shop.stream(client, "never mind") as response:
            pieces = lines(response)  # the stream is closed as soon as nobody has it any more
            assert next(pieces) == 'data: "word"'
            assert not left(shop.model)
        if not shop.case.notices:
            held.set()
        wait_until(lambda: left(shop.model), seconds=SECONDS)
        held.set()
        assert shop.said() == []

        # Two streams at once, each in pieces: workers without threads answer one each.
        shop.model.script(Reply("Hello Ada.", hold=hold), Reply("Hello again.", hold=hold))
        with shop.stream(client, "one") as first, shop.stream(client, "two") as second:
            both = lines(first), lines(second)
            assert [next(one) for one in both] == ['data: "Hello"'] * 2
            assert shop.said() == []
            hold.set()
            assert sorted([*both[0], *both[1]]) == ['data: " Ada."', 'data: " again."']
        assert len(shop.said()) == 4

        with shop.stream(client, "My name is Ada.") as response:
            assert len(list(lines(response))) == 8
        with shop.stream(client, "What is my name?") as response:
            assert list(lines(response))[-1] == 'data: " Ada."'
        assert len(shop.said()) == 8
