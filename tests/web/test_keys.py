"""A message that is sent again, with the key it had; without a browser."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urljoin
from uuid import uuid4

import httpx2
import pytest

from tests.waiting import wait_until
from tests.web.running import SECONDS, Application
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "a-key-of-16-chars"


class User:
    """Somebody with a name and a conversation."""

    def __init__(self, client: httpx2.Client, url: str) -> None:
        self._client = client
        self._address = urljoin(url, client.get(url).headers["Location"])
        named = client.post(urljoin(url, "/me"), json={"name": f"Ada {uuid4().hex}"})
        assert named.status_code == 204

    def ask(self, text: str, key: str = KEY) -> list[str]:
        """Send a message; give the events as they came."""
        response = self.post(json.dumps({"text": text, "key": key}))
        assert response.status_code == 200
        return [one for one in response.text.split("\n\n") if one and not one.startswith(":")]

    def post(self, body: str, kind: str = "application/json") -> httpx2.Response:
        """Send any body."""
        headers = {"Content-Type": kind}
        return self._client.post(f"{self._address}/turns", content=body, headers=headers)

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
    assert user.ask("My name is Bob.")[0].startswith("event: refused")
    assert user.turns() == [KEY]
    assert len(model.requests) == 1


def test_too_many_at_once_are_told_so(
    user: User, model: ModelServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(user.ask, "Hi", f"{KEY}-{n}") for n in range(6)]
        wait_until(lambda: any(one.done() for one in asked), seconds=SECONDS)
        hold.set()
        ends = sorted(one.result()[-1].partition("\n")[0] for one in asked)
    assert ends == ["event: busy", *["event: done"] * 5]
    assert len(user.turns()) == 5


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
