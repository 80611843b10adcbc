"""The applications of the guides, under the servers that they are for, and with two workers."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from openai import OpenAIError

from tests.waiting import wait_until
from tests.web.guides import code_of, left
from tests.web.running import PYTHON, SECONDS, Application, application
from turnstore import Store
from turnstore.errors import ErasedError, LeaseTimeoutError, UnavailableError
from turnstore.server import free_port
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstore.server import EmbeddedServer

_UVICORN = [*PYTHON, "-m", "uvicorn", "--workers", "2", "--port"]
# gunicorn itself leaves sockets and files to the end of the process.
_GUNICORN = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind"]
_DONE = ["event: done", 'data: ""']
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
        unknown: The status where nobody has said who they are.
    """

    guide: str
    server: list[str]
    kind: str = ""
    stream: str = "/stream"
    unknown: int = 401

    @property
    def asks(self) -> bool:
        """Whether there is an answer in one piece, too."""
        return self.guide != "fastapi-recall"

    @property
    def notices(self) -> bool:
        """Whether it notices that a client has left while the model says nothing."""
        return self.server is _UVICORN

    def __str__(self) -> str:
        return f"{self.guide}-{'uvicorn' if self.notices else 'gunicorn-preload'}"


CASES = [
    Case("fastapi", _UVICORN),
    Case("fastapi-recall", _UVICORN, stream="/chats/support"),
    Case("starlette", _UVICORN),
    Case("django", _UVICORN, "asgi", "/astream", unknown=400),
    Case("django", _GUNICORN, "wsgi", unknown=400),
    Case("flask", _GUNICORN),
]


@dataclass
class Shop:
    """A running application of a guide."""

    case: Case
    app: Application
    model: ModelServer
    store: Store

    def stream(self, client: httpx2.Client, text: str, **headers: str) -> Any:
        return client.stream(
            "POST",
            f"{self.app.url}{self.case.stream}",
            json={"text": text},
            headers={"X-User": "ada", **headers},
        )

    def said(self, user: str = "ada") -> list[str]:
        chat = self.store.conversation("support", owner=user)
        return [message["content"] for message in chat.read()]


@pytest.fixture(scope="module", params=CASES, ids=str)
def shop(
    request: pytest.FixtureRequest,
    redis: EmbeddedServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Shop]:
    case: Case = request.param
    folder = tmp_path_factory.mktemp("guide")
    name = f"guide-{case}"
    (folder / "guide.py").write_text(code_of(case.guide, redis.url, name))
    (folder / "main.py").write_text(
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
                folder / "log",
                cwd=folder,
                OPENAI_BASE_URL=model.base_url,
                OPENAI_API_KEY="none-is-needed",
            )
        )
        yield Shop(case, app, model, store)
        said = app.log.read_text()
        assert "Traceback" not in said, said


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=SECONDS) as client:
        yield client


def lines(response: httpx2.Response) -> Iterator[str]:
    """Give the lines of events; what was recalled, where a guide tells it first, is left out."""
    found = (line for line in response.iter_lines() if line)
    for line in found:
        if line == "event: recalled":
            next(found)
        else:
            yield line


def test_who_leaves_ends_the_call_of_the_model(shop: Shop, client: httpx2.Client) -> None:
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


def test_it_streams_in_pieces_and_remembers(
    shop: Shop, client: httpx2.Client, hold: threading.Event
) -> None:
    # Two streams at once: workers without threads answer one each.
    bob = {"X-User": "bob"}
    shop.model.script(Reply("Hello Ada.", hold=hold), Reply("Hello Bob.", hold=hold))
    with shop.stream(client, "one") as first, shop.stream(client, "two", **bob) as second:
        both = lines(first), lines(second)
        assert [next(one) for one in both] == ['data: "Hello"'] * 2
        assert shop.said() == shop.said("bob") == []
        hold.set()
        rest = [*both[0], *both[1]]
        assert sorted(rest) == sorted(['data: " Ada."', 'data: " Bob."', *_DONE, *_DONE])
    assert len(shop.said()) == len(shop.said("bob")) == 2

    with shop.stream(client, "My name is Ada.") as response:
        assert len(list(lines(response))) == 8 + len(_DONE)
    with shop.stream(client, "What is my name?") as response:
        assert list(lines(response))[-3:] == ['data: " Ada."', *_DONE]
    assert len(shop.said()) == 6


@pytest.mark.parametrize("name", ["", None], ids=["empty", "none"])
def test_somebody_has_to_be_there(shop: Shop, client: httpx2.Client, name: str | None) -> None:
    asked = len(shop.model.requests)
    headers = {} if name is None else {"X-User": name}
    for path in {"/ask", shop.case.stream} if shop.case.asks else {shop.case.stream}:
        answer = client.post(f"{shop.app.url}{path}", json={"text": "Hi"}, headers=headers)
        assert answer.status_code == shop.case.unknown
    assert len(shop.model.requests) == asked


def test_what_fails_before_the_stream_has_a_status(
    shop: Shop, client: httpx2.Client, redis: EmbeddedServer
) -> None:
    carol = {"X-User": "carol"}
    shop.model.script(Reply.error(400))
    with shop.stream(client, "Hi", **carol) as response:
        assert response.status_code == 502
    asked = len(shop.model.requests)
    redis.kill()
    try:
        with shop.stream(client, "Hi", **carol) as response:
            assert response.status_code == 503
    finally:
        redis.restart()
    assert len(shop.model.requests) == asked
    with shop.stream(client, "Hi", **carol) as response:
        assert response.status_code == 200
        assert len(list(lines(response))) > 1
    assert len(shop.said("carol")) == 2


@pytest.mark.parametrize("shop", CASES[:1], ids=str, indirect=True)
@pytest.mark.parametrize("key", ["7", 'of "any" form, and longer than any turn id: ' + "x" * 200])
def test_fastapi_answers_a_message_once(
    shop: Shop, client: httpx2.Client, hold: threading.Event, key: str
) -> None:
    user = {"X-User": f"dora {len(key)}", "Idempotency-Key": key}
    asked = len(shop.model.requests)
    shop.model.script(Reply("Hello Dora.", hold=hold))
    with ThreadPoolExecutor(1) as pool, shop.stream(client, "Hi", **user) as first:
        pieces = lines(first)
        assert next(pieces) == 'data: "Hello"'
        again = pool.submit(
            client.post, f"{shop.app.url}/stream", json={"text": "Hi"}, headers=user
        )
        hold.set()
        assert list(pieces) == ['data: " Dora."', *_DONE]
        assert (again.result().status_code, again.result().json()) == (200, "Hello Dora.")
    assert len(shop.model.requests) == asked + 1
    assert len(shop.said(user["X-User"])) == 2


@pytest.mark.parametrize("shop", CASES[:1], ids=str, indirect=True)
def test_fastapi_answers_another_message_under_the_same_key(
    shop: Shop, client: httpx2.Client
) -> None:
    fred = {"X-User": "fred", "Idempotency-Key": "7"}
    for text, count in (("one", 2), ("two", 4), ("one", 4)):
        answer = client.post(f"{shop.app.url}/ask", json={"text": text}, headers=fred)
        assert answer.json().endswith(f"says: {text}")
        assert len(shop.said("fred")) == count


@pytest.mark.parametrize("shop", CASES[:1], ids=str, indirect=True)
def test_fastapi_says_when_to_come_again(
    shop: Shop, client: httpx2.Client, redis: EmbeddedServer
) -> None:
    redis.kill()
    try:
        answer = client.post(f"{shop.app.url}/ask", json={"text": "Hi"}, headers={"X-User": "gil"})
    finally:
        redis.restart()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")


@pytest.mark.parametrize(
    "error, status",
    [
        (ErasedError("…", reason="owner"), 409),
        (ErasedError("…", reason="conversation"), 409),
        (ErasedError("…", reason="lost"), 503),  # nobody deleted it
        (LeaseTimeoutError("…"), 429),
        (UnavailableError("…"), 503),
        (OpenAIError("…"), 502),
    ],
    ids=lambda value: getattr(value, "reason", type(value).__name__),
)
def test_fastapi_has_a_status_for_each_failure(error: Exception, status: int) -> None:
    guide: dict[str, Any] = {"__name__": "guide"}
    exec(code_of("fastapi", "redis://localhost:6379", "shop"), guide)  # noqa: S102 - our own page
    assert guide["status_of"](error) == status


INCOMPLETE = [
    Reply("Half an answer", ending="truncated"),
    Reply("Half an answer", ending="cut"),
    Reply("Half an answer", finish="content_filter"),
    Reply(refusal="I will not."),
]


@pytest.mark.parametrize("reply", INCOMPLETE, ids=["truncated", "cut", "filtered", "refused"])
def test_a_stream_of_which_nothing_is_stored_says_so(
    shop: Shop, client: httpx2.Client, reply: Reply
) -> None:
    shop.model.script(reply)
    with shop.stream(client, "Hi", **{"X-User": "hal"}) as response:
        assert response.status_code == 200
        found = list(lines(response))
    assert found[-2] == "event: failed"
    assert "event: done" not in found
    assert shop.said("hal") == []


def test_a_refusal_is_no_answer(shop: Shop, client: httpx2.Client) -> None:
    shop.model.script(Reply(refusal="I will not."))
    path = "/ask" if shop.case.asks else shop.case.stream
    answer = client.post(f"{shop.app.url}{path}", json={"text": "Hi"}, headers={"X-User": "ida"})
    if shop.case.asks:
        assert answer.status_code == 502
        assert "I will not." in answer.text
    else:
        assert "event: failed" in answer.text
    assert shop.said("ida") == []


@pytest.mark.parametrize("shop", CASES[:2], ids=str, indirect=True)
def test_fastapi_says_what_fails_later_in_an_event(shop: Shop, client: httpx2.Client) -> None:
    path = "/chat" if shop.case.asks else shop.case.stream
    hold = threading.Event()
    shop.model.script(Reply("Hello Emma.", hold=hold))
    emma = {"X-User": "emma"}
    with shop.stream(client, "Hi", **emma) as response:
        pieces = lines(response)
        assert next(pieces) == 'data: "Hello"'
        deleted = client.delete(f"{shop.app.url}{path}", headers=emma)  # while it is answered
        assert (deleted.status_code, deleted.json()) == (200, 0)
        hold.set()
        assert list(pieces)[:2] == ['data: " Emma."', "event: failed"]
    assert shop.said("emma") == []
