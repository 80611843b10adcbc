"""What a person is told when something fails, and what is stored then."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeAlias

import pytest
from playwright.sync_api import expect
from redis import Redis

from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import BrowserContext, Request, Route

    from tests.web.conftest import Tab
    from turnstore.server import EmbeddedServer

Stored: TypeAlias = "Callable[[Tab], list[str]]"

ASKED = "My name is Ada."
ANSWERED = "I will remember that your name is Ada."


@pytest.fixture
def mortal(redis: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """Give the Redis, for a test that ends it; it runs again afterwards."""
    yield redis
    redis.restart()


def works_when_tried_again(tab: Tab, stored: Stored) -> None:
    """Press the button, and see that the turn is answered and stored, and the note gone."""
    tab.tries_again()
    tab.sees(ASKED, ANSWERED)
    expect(tab.stored).to_have_count(1)
    expect(tab.note).to_have_count(0)
    assert stored(tab) == [ASKED, ANSWERED]


@pytest.mark.parametrize(
    "replies",
    [[Reply.error(500)] * 3, [Reply("I will", ending="truncated")], [Reply(refusal="No.")]],
    ids=["down", "cut", "refusal"],
)
def test_the_model_fails(
    tab: Tab, model: ModelServer, stored: Stored, replies: list[Reply]
) -> None:
    model.script(*replies)
    tab.say(ASKED)
    expect(tab.note).to_contain_text("The model gave no complete answer.")
    assert stored(tab) == []
    works_when_tried_again(tab, stored)


def test_what_fails_before_the_first_look_is_not_asked_again_by_itself(
    new_tab: Callable[..., Tab], new_user: Callable[..., BrowserContext], model: ModelServer
) -> None:
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if route.request.method == "GET" and not held:
            held.append(route)
        else:
            route.continue_()

    def is_look(request: Request) -> bool:
        return request.method == "GET" and request.url.endswith("/turns")

    user = new_user()
    user.route("**/turns", hold_the_first)
    tab = new_tab(user)
    model.script(Reply(refusal="No."))
    tab.say(ASKED)
    expect(tab.note).to_contain_text("The model gave no complete answer.")
    with tab.page.expect_request(is_look):  # what comes regularly from then on
        held[0].continue_()
    expect(tab.note).to_contain_text("The model gave no complete answer.")
    assert len(model.requests) == 1


def test_there_is_no_redis(
    tab: Tab, model: ModelServer, stored: Stored, mortal: EmbeddedServer
) -> None:
    mortal.kill()
    tab.say(ASKED)
    expect(tab.note).to_contain_text("The memory failed, so the model was not asked.")
    expect(tab.page.locator("#notice")).to_have_text(
        "The conversation cannot be read at the moment."
    )
    assert model.requests == []
    mortal.restart()
    expect(tab.page.locator("#notice")).to_be_hidden()
    works_when_tried_again(tab, stored)


def test_an_outage_does_not_look_like_an_empty_chat(tab: Tab, mortal: EmbeddedServer) -> None:
    mortal.kill()
    tab.page.reload()
    expect(tab.page.locator("#notice")).to_have_text(
        "The conversation cannot be read at the moment."
    )
    expect(tab.page.get_by_text("What would you like to talk about?")).to_be_hidden()


def test_only_the_save_fails_and_redis_is_back_soon(
    tab: Tab, model: ModelServer, stored: Stored, mortal: EmbeddedServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    tab.say(ASKED)
    tab.sees(ASKED, "Hello")
    mortal.kill()
    hold.set()
    tab.sees(ASKED, "Hello Ada.")
    expect(tab.note).to_contain_text("not stored yet")
    mortal.restart()
    expect(tab.stored).to_have_count(1)
    expect(tab.note).to_have_count(0)
    assert stored(tab) == [ASKED, "Hello Ada."]


def test_only_the_save_fails_and_redis_stays_away(
    tab: Tab, model: ModelServer, stored: Stored, mortal: EmbeddedServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    tab.say(ASKED)
    tab.sees(ASKED, "Hello")
    mortal.kill()
    hold.set()
    expect(tab.note).to_contain_text("could not be stored")
    tab.sees(ASKED, "Hello Ada.")
    mortal.restart()
    assert stored(tab) == []
    works_when_tried_again(tab, stored)


def test_redis_forgets_everything_meanwhile(
    tab: Tab, model: ModelServer, stored: Stored, redis: EmbeddedServer, hold: threading.Event
) -> None:
    model.script(Reply("Hello Ada.", hold=hold))
    tab.say(ASKED)
    tab.sees(ASKED, "Hello")
    with Redis.from_url(redis.url) as client:  # all but who may answer: that ends a turn, too
        client.delete(*(key for key in client.keys("*") if not key.endswith(b"lease")))
    hold.set()
    expect(tab.note).to_contain_text("could not be stored")
    works_when_tried_again(tab, stored)
