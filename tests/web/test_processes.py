"""The processes of the chat: how they start and end, and one that dies."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.waiting import wait_until
from tests.web.running import PYTHON, SECONDS, application, children, exists, speaks_to
from turnstore.server import EmbeddedServer, free_port
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.web.conftest import Tab


def test_a_worker_dies_in_the_middle_of_an_answer(
    new_tab: Callable[..., Tab],
    redis: EmbeddedServer,
    stored: Callable[[Tab], list[str]],
    hold: threading.Event,
    tmp_path: Path,
) -> None:
    port = free_port()
    command = [*PYTHON, "-m", "examples.web", "--port", str(port), "--workers", "2"]
    with (
        ModelServer() as model,  # asked by one worker alone
        application(
            command,
            f"http://127.0.0.1:{port}",
            tmp_path / "log",
            REDIS_URL=redis.url,
            OPENAI_BASE_URL=model.base_url,
            OPENAI_API_KEY="none-is-needed",
        ) as app,
    ):
        ada, bob = new_tab(url=app.url), new_tab(url=app.url)
        model.script(Reply("Half of it", hold=hold))
        ada.say("My name is Ada.")
        ada.sees("My name is Ada.", "Half")
        model_port = int(model.url.rpartition(":")[2])
        wait_until(lambda: any(speaks_to(one, model_port) for one in app.workers()))
        worker = next(one for one in app.workers() if speaks_to(one, model_port))
        os.kill(worker, signal.SIGKILL)

        expect(ada.note).to_contain_text("The connection was lost. Asking again")
        bob.say("My name is Bob.")
        bob.sees("My name is Bob.", "I will remember that your name is Bob.")
        ada.sees("My name is Ada.", "I will remember that your name is Ada.")
        expect(ada.stored).to_have_count(1)
        assert stored(ada) == ["My name is Ada.", "I will remember that your name is Ada."]
        assert len(model.requests) == 3
        wait_until(lambda: len(app.workers()) == 2, seconds=SECONDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_one_command_starts_all_and_ends_all(
    new_tab: Callable[..., Tab], tmp_path: Path, number: signal.Signals
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [*PYTHON, "-m", "examples.web", "--port", str(port), "--workers", "2"]
    with application(command, url, tmp_path / "log") as app:
        tab = new_tab(url=app.url)
        tab.say("My name is Ada.")
        expect(tab.stored).to_have_count(1)
        tab.begins_anew()
        tab.say("What is my name?")
        expect(tab.stored).to_have_count(1)
        expect(tab.recalled).to_contain_text("My name is Ada.")  # whatever server it has found
        tab.say("A message with an answer that is still on its way when it all ends")
        expect(tab.answers.last).not_to_be_empty()
        started = children(app.pid)
        assert len(app.workers()) == 2
        assert len(started) >= 4  # a Redis and what watches over it
        assert app.end(number) == 0
        wait_until(lambda: not any(map(exists, started)), seconds=SECONDS)
    said = app.log.read_text()
    assert f"Open {url}" in said
    assert said.endswith("Stopped.\n")
    assert "Traceback" not in said
