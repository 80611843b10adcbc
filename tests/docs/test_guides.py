"""What guides promise, and their code alone cannot show."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from turnstore import AsyncStore, Store
from turnstore.errors import UnavailableError
from turnstore.testing import ModelServer, Reply, ToolCall

GUIDES = Path(__file__).parents[2] / "docs/guides"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def _tested(code: str, folder: Path, seconds: int) -> str:
    """Run the tests in this code as a user does, all of which pass; give what pytest says."""
    (folder / "test_app.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:valkey", "--rootdir", folder, folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_fixtures_for_pytest_work(tmp_path: Path) -> None:
    before, _, section = (
        (GUIDES / "test-your-application.md").read_text().partition("## With pytest")
    )
    imports = re.findall(r"^(?:from|import) .+$", "\n".join(_BLOCK.findall(before)), re.MULTILINE)
    code = "\n".join([*imports, *_BLOCK.findall(section)])
    assert "2 passed" in _tested(code, tmp_path, seconds=60)


@pytest.mark.web
def test_the_tests_of_a_web_application_work(tmp_path: Path) -> None:
    code = "\n".join(_BLOCK.findall((GUIDES / "web" / "testing.md").read_text()))
    assert "5 passed" in _tested(code, tmp_path, seconds=120)


@pytest.mark.web
def test_an_answer_is_made_anew_and_the_old_one_stays_until_then(
    redis_url: str, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastapi.testclient import TestClient  # noqa: PLC0415 - only `make test-web` has it

    from tests.web.guides import code_of  # noqa: PLC0415

    guide: dict[str, Any] = {"__name__": "guide"}
    exec(code_of("fastapi-recall", redis_url, "shop"), guide)  # noqa: S102 - our own page
    with TestClient(guide["app"], headers={"X-User": "ada"}) as browser:

        def say(text: str, **more: str) -> Any:
            return browser.post("/chats/monday", json={"text": text, **more})

        def questions() -> list[str]:
            return [text for _, text in browser.get("/chats/monday").json()]

        for text in ("My cat is Tom.", "My dog is Rex.", "My fish is Flo."):
            say(text)
        before = browser.get("/chats/monday").json()
        (_, _), (second, _), (last, _) = before
        model_server.script(Reply.error(400), Reply("Half an", ending="truncated"))
        assert say("My fish is Bo.", replaces=last).status_code == 502
        assert "event: failed" in say("My fish is Bo.", replaces=last).text
        assert browser.get("/chats/monday").json() == before
        for no_id in ("not an id", "x" * 65, 'a"b', "ä", "x\n", ""):
            assert say("?", replaces=no_id).status_code == 422
        assert browser.get("/chats/monday").json() == before

        assert "event: done" in say("My fish is Bo.", replaces=last).text
        assert "Flo" not in str(model_server.requests[-1].messages)
        assert say("My fish is Bo.", replaces=last).status_code == 409
        assert questions() == ["My cat is Tom.", "My dog is Rex.", "My fish is Bo."]

        for own in ("request/7:a", "~" * 64):  # as an application may give them
            with Store.from_url(redis_url, name="shop") as store:
                chat = store.conversation("sunday", owner="ada")
                chat.append(["?", {"role": "assistant", "content": "!"}], turn_id=own)
            again = browser.post("/chats/sunday", json={"text": "Hi", "replaces": own})
            assert "event: done" in again.text
        found = browser.get("/chats/sunday").json()
        assert [text for _, text in found] == ["Hi", "Hi"]

        def broken(*_: object) -> None:
            raise UnavailableError("no answer")

        with monkeypatch.context() as patch:
            patch.setattr("turnstore.facts._exchanging.forget_turns", broken)
            assert "event: done" in say("My dog is Max.", replaces=second).text
        assert questions() == ["My cat is Tom.", "My dog is Max."]
        other = browser.post("/chats/friday", json={"text": "Who is Flo, my fish?"}).text
        assert "Flo." not in other, "it was forgotten"
        assert "Bo." in other, "it could not be"


def _called(name: str, arguments: str) -> Reply:
    """Call a tool as it is, and then as it is not."""
    fits = ToolCall(name="Weather", arguments={"city": "Rome"})
    return Reply(tool_calls=[fits, ToolCall(name=name, arguments=arguments)])


@pytest.mark.web
@pytest.mark.parametrize(
    "last, ends, stored",
    [
        (Reply("Take no umbrella."), "done", ["user", "assistant", "tool", "assistant"]),
        (Reply("Take no", ending="truncated"), "failed", []),
        (Reply(refusal="No."), "failed", []),
        (Reply.error(400), "failed", []),
        (Reply("Take no", finish="length"), "failed", []),
        (_called("Weather", "no JSON"), "failed", []),
        (_called("Weather", '{"city": '), "failed", []),
        (_called("Weather", '{"town": "Paris"}'), "failed", []),
        (_called("Weather", '{"city": 7}'), "failed", []),
        (_called("Time", '{"city": "Paris"}'), "failed", []),
    ],
    ids=[
        *("whole", "cut", "refusal", "error", "length"),
        *("no JSON", "half", "another field", "another type", "another tool"),
    ],
)
def test_tools_in_a_stream_are_one_turn(
    redis_url: str, model_server: ModelServer, last: Reply, ends: str, stored: list[str]
) -> None:
    from fastapi.testclient import TestClient  # noqa: PLC0415 - only `make test-web` has it

    from tests.web.guides import code_of  # noqa: PLC0415

    guide: dict[str, Any] = {"__name__": "guide"}
    exec(code_of("fastapi-recall", redis_url, "shop"), guide)  # noqa: S102 - our own page
    guide["answer"] = guide["answer_with_tools"]
    model_server.script(Reply.tool_call("Weather", city="Paris"), last)
    with TestClient(guide["app"], headers={"X-User": "ada"}) as browser:
        answered = browser.post("/chats/monday", json={"text": "The weather in Paris?"})
    lines = [line for line in answered.iter_lines() if line]
    assert lines[0] == "event: recalled"
    assert lines[-2] == f"event: {ends}"
    assert lines.count("event: recalled") == 1
    asked = model_server.requests[1].messages
    assert [message["role"] for message in asked] == ["user", "assistant", "tool"]
    with Store.from_url(redis_url, name="shop") as store:
        messages = store.conversation("monday", owner="ada").read()
    assert [message["role"] for message in messages] == stored
    assert all("parsed" not in str(message) for message in messages)


async def test_a_redis_that_hangs_is_not_waited_for_by_a_readiness_check() -> None:
    section = (GUIDES / "many-workers.md").read_text().partition("\n## Health\n")[2]
    code = _BLOCK.findall(section)[0].partition("\n\nprint(")[0]
    assert "asyncio.timeout(3)" in code
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"redis://127.0.0.1:{hanging.getsockname()[1]}"
        async with AsyncStore.from_url(url, name="docs") as store:
            guide: dict[str, Any] = {"store": store}
            exec(code.replace("timeout(3)", "timeout(0.2)"), guide)  # noqa: S102 - our own page
            assert await guide["ready"]() == (503, "TimeoutError")


def test_no_message_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    client = redis.Redis(port=1, retry=Retry(NoBackoff(), 0))
    chat = Store(client, name="docs").conversation("ada")
    pending = chat.turn("a secret question", on_load_error="continue")
    with caplog.at_level(logging.DEBUG, "turnstore"), pending as turn:
        turn.reply("a secret answer")
    assert "without memory" in caplog.text
    assert "not saved" in caplog.text
    assert "secret" not in caplog.text


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_a_store_tries_five_times_where_redis_hangs(*, asynchronous: bool) -> None:
    async def read() -> None:
        async with AsyncStore.from_url(url, name="docs") as store:
            await store.conversation("ada").read()

    tries = 0
    with socket.create_server(("127.0.0.1", 0)) as hanging, ThreadPoolExecutor(1) as thread:
        port = hanging.getsockname()[1]
        url = f"redis://127.0.0.1:{port}?socket_timeout=0.2&socket_connect_timeout=0.2"
        with pytest.raises(UnavailableError):  # noqa: PT012 - one of both is run
            if asynchronous:
                thread.submit(asyncio.run, read()).result()
            else:
                with Store.from_url(url, name="docs") as store:
                    store.conversation("ada").read()
        hanging.settimeout(0)  # each try has a connection of its own, none was accepted
        with suppress(BlockingIOError):
            while True:
                hanging.accept()[0].close()
                tries += 1
    assert tries == 5
