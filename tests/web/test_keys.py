"""A message that is sent again, with the key it had; without a browser."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urljoin
from uuid import uuid4

import httpx2
import pytest
from redis import Redis

from tests.leases.line import key_of, parsed
from tests.waiting import wait_until
from tests.web.running import SECONDS, Application
from turnstore import Store
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

    from turnstore.server import EmbeddedServer

KEY = "a-key-of-16-chars"


class User:
    """Somebody with a name and a conversation."""

    def __init__(self, client: httpx2.Client, url: str) -> None:
        self._client = client
        self._address = urljoin(url, client.get(url).headers["Location"])
        self.chat_id = self._address.rpartition("/")[2]
        self.name = f"Ada {uuid4().hex}"
        named = client.post(urljoin(url, "/me"), json={"name": self.name})
        assert named.status_code == 204

    def ask(self, text: str, key: str = KEY) -> list[str]:
        """Send a message; give the events as they came."""
        response = self.send(text, key)
        assert response.status_code == 200, response.text
        return [one for one in response.text.split("\n\n") if one and not one.startswith(":")]

    def send(self, text: str, key: str = KEY) -> httpx2.Response:
        """Send a message."""
        return self.post(json.dumps({"text": text, "key": key}))

    def post(self, body: str, kind: str = "application/json") -> httpx2.Response:
        """Send any body."""
        headers = {"Content-Type": kind}
        return self._client.post(f"{self._address}/turns", content=body, headers=headers)

    @contextmanager
    def sending(self, text: str, key: str) -> Iterator[None]:
        """Send a message, and leave at the end of the block."""
        request = self._client.build_request(
            "POST", f"{self._address}/turns", json={"text": text, "key": key}
        )
        head = [f"POST {request.url.path} HTTP/1.1", *map(": ".join, request.headers.items())]
        port = request.url.port
        assert port is not None
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall("\r\n".join([*head, "", ""]).encode() + request.read())
            yield

    def turns(self) -> list[str]:
        """The ids of what is stored."""
        return [turn["id"] for turn in self._client.get(f"{self._address}/turns").json()]


@pytest.fixture
def user(app: Application) -> Iterator[User]:
    with httpx2.Client(timeout=SECONDS) as client:
        yield User(client, app.url)


def test_sent_twice_it_is_answered_once(user: User, model: ModelServer) -> None:
    model.script(Reply("Hello Ada."))
    first = user.ask("My name is Ada.")
    assert first == [
        'event: recalled\ndata: ""',
        'event: text\ndata: "Hello"',
        'event: text\ndata: " Ada."',
        'event: done\ndata: ""',
    ]
    again = user.ask("My name is Ada.")
    assert again == ['event: again\ndata: "Hello Ada."', 'event: done\ndata: ""']
    assert user.turns() == [KEY]
    assert len(model.requests) == 1


def test_sent_again_while_it_is_answered_it_waits(
    user: User, model: ModelServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(user.ask, "My name is Ada.")
        wait_until(lambda: model.requests, seconds=SECONDS)
        others = [pool.submit(user.ask, "My name is Ada.") for _ in range(2)]
        hold.set()
        assert first.result()[-1].startswith("event: done")
        for other in others:
            assert other.result()[0] == 'event: again\ndata: "Hello Ada."'
    assert user.turns() == [KEY]
    assert len(model.requests) == 1


def test_a_key_is_for_one_message(user: User, model: ModelServer) -> None:
    user.ask("My name is Ada.")
    refused = user.send("My name is Bob.")
    assert refused.status_code == 422
    assert refused.json() == {"detail": "This key belongs to another message."}
    assert user.turns() == [KEY]
    assert len(model.requests) == 1


def test_too_many_at_once_are_told_so(
    user: User, model: ModelServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(user.send, "Hi", f"{KEY}-{n}") for n in range(6)]
        wait_until(lambda: any(one.done() for one in asked), seconds=SECONDS)
        hold.set()
        answers = [one.result() for one in asked]
    assert sorted(one.status_code for one in answers) == [200] * 5 + [429]
    assert [one.json()["detail"] for one in answers if one.status_code == 429] == [
        "Other messages of this conversation are still being answered."
    ]
    assert len(user.turns()) == 5


def test_a_model_that_fails_before_it_answers_is_a_status(user: User, model: ModelServer) -> None:
    model.script(Reply.error(400))
    failed = user.send("My name is Ada.")
    assert (failed.status_code, failed.json()) == (
        502,
        {"detail": "The model gave no complete answer."},
    )
    assert user.turns() == []
    model.script(Reply(refusal="No."))  # it answers, and then it does not
    assert user.ask("My name is Ada.") == [
        'event: recalled\ndata: ""',
        'event: model\ndata: "The model gave no complete answer."',
    ]


def test_who_leaves_waits_no_more_for_what_is_answered_before(
    user: User, model: ModelServer, redis: EmbeddedServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    with (
        Store.from_url(redis.url, name="web-example") as store,
        Redis.from_url(redis.url) as raw,
        ThreadPoolExecutor(1) as pool,
    ):
        queue = key_of(store.conversation(user.chat_id, owner=user.name))
        first = pool.submit(user.ask, "My name is Ada.")
        wait_until(lambda: model.requests, seconds=SECONDS)
        with user.sending("Never mind.", "another-key-of-24-chars_"):
            wait_until(lambda: len(parsed(raw.get(queue)).waiting) == 1, seconds=SECONDS)
        wait_until(lambda: len(parsed(raw.get(queue)).waiting) == 0, seconds=SECONDS)
        hold.set()
        assert first.result()[-1].startswith("event: done")
    assert user.turns() == [KEY]
    assert len(model.requests) == 1


JSON = "application/json"
FORM = "text/plain"  # a form on another site can send this, and no JSON


@pytest.mark.parametrize(
    "text, key, kind",
    [
        ("", KEY, JSON),
        ("Hi", "short", JSON),
        ("Hi", "é" * 16, JSON),
        ("half a \ud83d", KEY, JSON),
        ("Hi", KEY, FORM),
    ],
    ids=["no-text", "short-key", "odd-key", "surrogate", "no-json"],
)
def test_what_is_no_message_is_refused(
    user: User, model: ModelServer, text: str, key: str, kind: str
) -> None:
    assert user.post(json.dumps({"text": text, "key": key}), kind).status_code == 422
    assert model.requests == []
