"""The chat as one person uses it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from turnstore.testing import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.web.conftest import Tab
    from turnstore.results import Turn
    from turnstore.testing import ModelServer

Stored = "Callable[[Tab], list[Turn]]"


def test_the_second_question_knows_the_first(
    tab: Tab, model: ModelServer, stored: Callable[[Tab], list[Turn]]
) -> None:
    tab.say("My name is Ada.")
    tab.sees("My name is Ada.", "I will remember that your name is Ada.")
    expect(tab.stored).to_have_count(1)
    tab.say("What is my name?")
    expect(tab.answers.last).to_have_text("Your name is Ada.")
    expect(tab.stored).to_have_count(2)

    assert [message["role"] for message in model.requests[-1].messages] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert [[m["role"] for m in turn.messages] for turn in stored(tab)] == [
        ["user", "assistant"]
    ] * 2


def test_an_answer_arrives_in_pieces(tab: Tab, model: ModelServer) -> None:
    more = threading.Event()
    model.script(Reply("One two three.", hold=more))
    tab.say("Count")
    try:
        tab.sees("Count", "One")
        expect(tab.page.get_by_role("button", name="Stop")).to_be_visible()
    finally:
        more.set()
    tab.sees("Count", "One two three.")
    expect(tab.page.get_by_role("button", name="Send")).to_be_visible()
