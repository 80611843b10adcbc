"""The chat as people use it, each with a browser."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx2
from playwright.sync_api import expect

from tests.waiting import wait_until
from tests.web.conftest import Tab, endless
from tests.web.running import SECONDS, Application
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import BrowserContext, Route

Stored: TypeAlias = "Callable[[Tab], list[str]]"
NewTab: TypeAlias = "Callable[..., Tab]"

HOSTILE = "<script>document.title = 'x'</script><img src=x onerror=\"document.title = 'x'\">"


def test_the_second_question_knows_the_first(tab: Tab, model: ModelServer, stored: Stored) -> None:
    tab.say("My name is Ada.")
    tab.sees("My name is Ada.", "I will remember that your name is Ada.")
    expect(tab.stored).to_have_count(1)
    tab.say("What is my name?")
    expect(tab.answers.last).to_have_text("Your name is Ada.")
    expect(tab.stored).to_have_count(2)

    sent = [message["role"] for message in model.requests[-1].messages]
    assert sent == ["system", "user", "assistant", "user"]
    assert stored(tab)[2:] == ["What is my name?", "Your name is Ada."]


def test_an_answer_arrives_in_pieces(tab: Tab, model: ModelServer, hold: threading.Event) -> None:
    model.script(Reply("One two three.", hold=hold))
    tab.say("Count")
    tab.sees("Count", "One")
    expect(tab.page.get_by_role("button", name="Stop")).to_be_visible()
    hold.set()
    tab.sees("Count", "One two three.")
    expect(tab.page.get_by_role("button", name="Send")).to_be_visible()


def test_loaded_anew_the_page_shows_the_history(tab: Tab, model: ModelServer) -> None:
    tab.say("My name is Ada.")
    expect(tab.stored).to_have_count(1)
    tab.page.reload()
    tab.sees("My name is Ada.", "I will remember that your name is Ada.")
    expect(tab.page.get_by_role("link", name="My name is Ada.")).to_be_visible()
    assert len(model.requests) == 1


def test_loaded_anew_in_the_middle_it_asks_again(
    tab: Tab, model: ModelServer, stored: Stored, hold: threading.Event
) -> None:
    model.script(Reply("Half of it", hold=hold))
    tab.say("My name is Ada.")
    tab.sees("My name is Ada.", "Half")
    tab.page.reload()
    tab.sees("My name is Ada.", "I will remember that your name is Ada.")
    expect(tab.stored).to_have_count(1)
    assert len(stored(tab)) == 2
    assert len(model.requests) == 2


def test_stop_ends_the_call_of_the_model_and_nothing_is_stored(
    tab: Tab, model: ModelServer, stored: Stored
) -> None:
    left = threading.Event()
    model.script(Reply(events=endless(left)))  # type: ignore[arg-type]  # iterated once
    tab.say("Never end")
    tab.sees("Never end", re.compile("^One"))
    tab.page.get_by_role("button", name="Stop").click()
    expect(tab.note).to_have_text("Stopped. This is not stored.")
    assert left.wait(SECONDS), "the model is still asked"
    assert stored(tab) == []

    tab.say("My name is Ada.")
    expect(tab.answers.last).to_have_text("I will remember that your name is Ada.")
    expect(tab.stored).to_have_count(1)
    assert len(stored(tab)) == 2
    assert [m["role"] for m in model.requests[-1].messages] == ["system", "user"]


def test_two_tabs_take_turns_and_see_one_another(
    new_tab: NewTab, model: ModelServer, stored: Stored, hold: threading.Event
) -> None:
    first = new_tab()
    second = new_tab(first.page.context, first.page.url)
    onlooker = new_tab(first.page.context, first.page.url)
    model.script(Reply("Nice to meet you.", hold=hold))

    first.say("My name is Ada.")
    first.sees("My name is Ada.", "Nice")
    second.say("What is my name?")
    second.sees("What is my name?", "")
    hold.set()

    said = ("My name is Ada.", "Nice to meet you.", "What is my name?", "Your name is Ada.")
    for tab in (first, second, onlooker):
        tab.page.bring_to_front()
        tab.sees(*said)
    assert stored(first) == list(said)
    assert len(model.requests) == 2


def test_a_late_look_at_what_is_stored_takes_nothing_away(tab: Tab) -> None:
    late: list[Route] = []

    def delay_the_first(route: Route) -> None:
        if route.request.method == "GET" and not late:
            late.append(route)
        else:
            route.continue_()

    tab.page.route("**/turns", delay_the_first)
    # Whatever Playwright is asked, it sees to the routes meanwhile.
    wait_until(lambda: tab.page.title() and late, seconds=SECONDS)
    tab.say("My name is Ada.")
    expect(tab.stored).to_have_count(1)
    tab.page.evaluate(
        """new MutationObserver(seen => seen.forEach(
            one => { window.gone = (window.gone ?? 0) + one.removedNodes.length }
        )).observe(document.getElementById("turns"), {childList: true})"""
    )
    with tab.page.expect_request("**/turns"):  # the next look, after the late one
        late[0].fulfill(json=[], headers={"ETag": '"0"'})
    expect(tab.stored).to_have_count(1)
    assert tab.page.evaluate("window.gone ?? 0") == 0


def test_an_answer_that_was_lost_on_the_way_is_not_asked_for_again(
    tab: Tab, model: ModelServer, stored: Stored
) -> None:
    keys: list[str] = []
    lost: list[str] = []

    def lose_the_first(route: Route) -> None:
        message: Any = route.request.post_data_json
        if message:
            keys.append(message["key"])
        if message and len(keys) == 1:
            lost.append(route.fetch().text())
            route.abort()
        else:
            route.continue_()

    tab.page.route("**/turns", lose_the_first)
    tab.say("My name is Ada.")
    tab.sees("My name is Ada.", "I will remember that your name is Ada.")
    expect(tab.stored).to_have_count(1)
    assert "event: done" in lost[0]
    assert keys == [keys[0]] * 2
    assert len(stored(tab)) == 2
    assert len(model.requests) == 1


def test_what_looks_like_html_is_text(tab: Tab, model: ModelServer, stored: Stored) -> None:
    model.script(Reply(HOSTILE))
    tab.say(HOSTILE)
    expect(tab.stored).to_have_count(1)
    for _ in range(2):
        tab.sees(HOSTILE, HOSTILE)
        expect(tab.page.get_by_role("link", name="<script>")).to_be_visible()
        assert tab.page.locator("body img, body script").count() == 0
        assert tab.page.title() == "Chat"
        tab.page.reload()
    assert stored(tab) == [HOSTILE, HOSTILE]


def test_another_user_finds_nothing_at_the_same_address(
    app: Application, new_tab: NewTab, new_user: Callable[..., BrowserContext], stored: Stored
) -> None:
    ada = new_tab()
    ada.say("My name is Ada.")
    expect(ada.stored).to_have_count(1)
    bob = new_tab(new_user(), ada.page.url)
    expect(bob.page.get_by_text("What would you like to talk about?")).to_be_visible()
    bob.say("What is my name?")
    bob.sees("What is my name?", "You have not told me your name.")
    assert stored(ada)[0] == "My name is Ada."
    assert len(stored(ada)) == 2
    assert len(stored(bob)) == 2

    assert httpx2.get(f"{ada.page.url}/turns").status_code == 401
    guessed = httpx2.get(f"{app.url}/c/{'x' * 5}/turns", cookies={"user": "Ada"})
    assert guessed.status_code == 422


def test_it_fits_on_a_narrow_screen(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 320, "height": 500})
    tab.say("A very long word: " + "x" * 200)
    expect(tab.stored).to_have_count(1)
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 320
    expect(tab.page.get_by_label("Your message")).to_be_in_viewport()
