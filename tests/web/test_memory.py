"""What is said in one chat is recalled in the others of the same user."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from playwright.sync_api import expect

from examples.web.memory import DIMENSIONS, EMBEDDER, embed
from tests.web.conftest import Tab
from tests.web.running import PYTHON, application
from turnstore import Store
from turnstore.facts import Facts
from turnstore.server import free_port
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext

    from turnstore.server import EmbeddedServer

Stored: TypeAlias = "Callable[[Tab], list[str]]"
NewTab: TypeAlias = "Callable[..., Tab]"
NewUser: TypeAlias = "Callable[..., BrowserContext]"

TOLD, ASKED = "My cat is called Tom.", "What is my cat called?"


def test_one_chat_knows_what_another_was_told(
    new_tab: NewTab, new_user: NewUser, model: ModelServer, stored: Stored
) -> None:
    tab = new_tab()
    tab.say(TOLD)
    expect(tab.stored).to_have_count(1)
    expect(tab.recalled).to_have_count(0)
    told = tab.page.url
    elsewhere = new_tab(new_user(tab.user))
    assert elsewhere.page.url != told
    model.script(Reply("Tom."))
    elsewhere.say(ASKED)
    elsewhere.sees(ASKED, "Tom.")
    expect(elsewhere.stored).to_have_count(1)

    expect(elsewhere.recalled).to_have_count(1)
    expect(elsewhere.recalled.get_by_text(TOLD)).to_be_hidden()
    elsewhere.page.get_by_text("Recalled from earlier chats").click()
    expect(elsewhere.recalled.locator("p")).to_contain_text(f"User: {TOLD}")
    assert [one["role"] for one in model.requests[-1].messages] == ["system", "system", "user"]
    assert TOLD in model.requests[-1].messages[1]["content"]
    assert stored(elsewhere) == [ASKED, "Tom."]

    elsewhere.page.reload()  # it is no part of what was said
    elsewhere.sees(ASKED, "Tom.")
    expect(elsewhere.recalled).to_have_count(0)


def test_what_the_model_sees_anyway_is_not_recalled(tab: Tab, model: ModelServer) -> None:
    for text in (TOLD, ASKED):
        tab.say(text)
        expect(tab.page.locator(".user").last).to_have_text(text)
        expect(tab.stored).to_have_count(1 if text is TOLD else 2)
    expect(tab.recalled).to_have_count(0)
    roles = [one["role"] for one in model.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]


def test_nobody_else_ever_sees_it(
    new_tab: NewTab, new_user: NewUser, model: ModelServer, redis: EmbeddedServer
) -> None:
    ada = new_tab()
    ada.say(TOLD)
    expect(ada.stored).to_have_count(1)
    for name in (None, ada.user.lower(), f"{ada.user}*"):
        bob = new_tab(new_user(name), ada.page.url)
        bob.say(ASKED)
        expect(bob.stored).to_have_count(1)
        expect(bob.recalled).to_have_count(0)
        assert "Tom" not in str(model.requests[-1].messages)
    with Store.from_url(redis.url, name="web-example") as store:
        facts = Facts(store, embed=embed, dimensions=DIMENSIONS, embedder=EMBEDDER)
        assert [TOLD in one.text for one in facts.list(ada.user)] == [True]


def test_what_fits_no_question_is_not_recalled(tab: Tab) -> None:
    tab.say(TOLD)
    expect(tab.stored).to_have_count(1)
    tab.begins_anew()
    tab.say("Hello!")
    expect(tab.stored).to_have_count(1)
    expect(tab.recalled).to_have_count(0)


def test_an_answer_that_was_stopped_is_not_remembered(tab: Tab, model: ModelServer) -> None:
    model.script(Reply("word " * 10_000, pause=0.02))
    tab.say(TOLD)
    expect(tab.answers).to_contain_text("word")
    tab.page.get_by_role("button", name="Stop").click()
    expect(tab.note).to_have_text("Stopped. This is not stored.")
    tab.begins_anew()
    tab.say(ASKED)
    expect(tab.stored).to_have_count(1)
    expect(tab.recalled).to_have_count(0)


def test_without_numpy_it_is_a_chat_without_long_term_memory(
    new_tab: NewTab, model: ModelServer, redis: EmbeddedServer, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['numpy'] = None")
    port = free_port()
    with application(
        [*PYTHON, "-m", "examples.web", "--port", str(port), "--workers", "2"],
        f"http://127.0.0.1:{port}",
        tmp_path / "log",
        PYTHONPATH=str(tmp_path),
        REDIS_URL=redis.url,
        OPENAI_BASE_URL=model.base_url,
        OPENAI_API_KEY="none-is-needed",
    ) as app:
        tab = new_tab(url=app.url)
        for text in (TOLD, ASKED):
            tab.say(text)
            expect(tab.stored).to_have_count(1)
            expect(tab.recalled).to_have_count(0)
            tab.begins_anew()
        expect(tab.chats).to_have_text([ASKED, TOLD])
        tab.forgets()
        expect(tab.receipt).to_contain_text("chats 2, turns 2, memories 0. Nothing is left.")
    said = app.log.read_text()
    assert "Nothing is recalled across chats: turnstore.facts needs numpy" in said
    assert "Traceback" not in said
