"""Who asks: the name, the list of chats, and the end of it all."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx2
import pytest
from playwright.sync_api import expect

from examples.web.app import CHATS
from tests.web.conftest import Tab, endless
from tests.web.running import SECONDS, Application
from turnstore import Store
from turnstore.testing import ModelServer, Reply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import BrowserContext

    from turnstore.server import EmbeddedServer

Stored: TypeAlias = "Callable[[Tab], list[str]]"
NewTab: TypeAlias = "Callable[..., Tab]"
NewUser: TypeAlias = "Callable[..., BrowserContext]"

TOLD = "My cat is called Tom."


@pytest.fixture
def store(redis: EmbeddedServer) -> Iterator[Store]:
    """Give the application's store, past the application."""
    with Store.from_url(redis.url, name="web-example") as store:
        yield store


# ---- The name -----------------------------------------------------------------------------------


def test_the_page_asks_who_one_is(new_tab: NewTab, new_user: NewUser) -> None:
    tab = new_tab(new_user(""))
    expect(tab.page.get_by_label("Your message")).to_be_hidden()
    tab.page.get_by_label("Who are you?").fill("  Ådå 語; \u0022x\u0022 ")
    tab.page.get_by_role("button", name="Begin").click()
    expect(tab.page.get_by_label("Your message")).to_be_visible()
    expect(tab.page.locator("#me")).to_have_text('Ådå 語; "x"')
    (cookie,) = tab.page.context.cookies()
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Lax")
    assert tab.user == 'Ådå 語; "x"'


def test_somebody_else_takes_over_in_all_tabs(new_tab: NewTab, stored: Stored) -> None:
    first = new_tab()
    first.say(TOLD)
    expect(first.stored).to_have_count(1)
    second = new_tab(first.page.context, first.page.url)
    expect(second.stored).to_have_count(1)
    second.page.get_by_role("button", name="Not you?").click()
    second.page.get_by_label("Who are you?").fill(f"Not {first.user}")
    second.page.get_by_role("button", name="Begin").click()
    for tab in (first, second):
        expect(tab.page.locator("#me")).to_have_text(first.user)
        expect(tab.page.get_by_text("What would you like to talk about?")).to_be_visible()
        expect(tab.chats).to_have_count(0)
    assert first.user.startswith("Not ")
    assert stored(first) == []


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "half \ud83d"])
def test_what_is_no_name_is_refused(app: Application, name: str) -> None:
    body: Any = '{"name": "' + name.encode("ascii", "backslashreplace").decode() + '"}'
    headers = {"Content-Type": "application/json"}
    assert httpx2.post(f"{app.url}/me", content=body, headers=headers).status_code == 422


@pytest.mark.parametrize("cookie", ["", "x" * 65])
@pytest.mark.parametrize("method, path", [("GET", "/me"), ("DELETE", "/me"), ("GET", "/chats")])
def test_without_a_name_there_is_nothing(
    app: Application, method: str, path: str, cookie: str
) -> None:
    headers = {"Cookie": f"user={cookie}"}
    assert httpx2.request(method, f"{app.url}{path}", headers=headers).status_code == 401


# ---- The list of chats --------------------------------------------------------------------------


def test_the_list_is_the_same_in_every_browser_of_a_user(
    new_tab: NewTab, new_user: NewUser
) -> None:
    first = new_tab()
    first.say("About cats")
    expect(first.stored).to_have_count(1)
    second = new_tab(first.page.context)
    second.say("About dogs")
    expect(second.stored).to_have_count(1)
    elsewhere = new_tab(new_user(first.user))
    stranger = new_tab()
    for tab in (first, second, elsewhere):
        expect(tab.chats).to_have_text(["About dogs", "About cats"])
    first.say("What else?")  # what was written to last comes first; the title stays
    for tab in (first, second, elsewhere):
        expect(tab.chats).to_have_text(["About cats", "About dogs"])
        tab.page.reload()
        expect(tab.chats).to_have_text(["About cats", "About dogs"])
    expect(stranger.page.locator("#me")).to_have_text(stranger.user)
    expect(stranger.chats).to_have_count(0)

    elsewhere.page.get_by_role("link", name="About dogs").click()
    expect(elsewhere.page.locator(".user")).to_have_text("About dogs")
    expect(elsewhere.page.locator("[aria-current]")).to_have_text("About dogs")


def test_a_long_list_has_pages(new_tab: NewTab, new_user: NewUser, store: Store) -> None:
    user = new_user()
    tab = new_tab(user)
    titles = [f"Chat {number}" for number in range(2 * CHATS + 1)]
    for number, title in enumerate(titles):
        chat = store.conversation(f"{number:022}", owner=tab.user)
        chat.append(["Hello.", "Hello."])
        chat.set_title(title)
    older = tab.page.get_by_role("button", name="Older chats")
    titles.reverse()
    for pages in (1, 2):
        expect(tab.chats).to_have_text(titles[: pages * CHATS])
        older.click()
    expect(tab.chats).to_have_text(titles)
    expect(older).to_be_hidden()


def test_an_outage_does_not_empty_the_list(tab: Tab, redis: EmbeddedServer) -> None:
    tab.say(TOLD)
    expect(tab.chats).to_have_text([TOLD])
    redis.kill()
    try:
        expect(tab.page.locator("#notice")).to_be_visible()
        expect(tab.chats).to_have_text([TOLD])
        tab.forgets()
        expect(tab.receipt).to_have_text("Not all of it could be deleted. Please try again.")
        with tab.page.expect_response(lambda one: one.request.method == "DELETE") as told:
            tab.deletes(TOLD)
        assert told.value.status == 503
        expect(tab.receipt).to_have_text("Not all of it could be deleted. Please try again.")
    finally:
        redis.restart()
    expect(tab.page.locator("#notice")).to_be_hidden()
    expect(tab.chats).to_have_text([TOLD])


# ---- The end of a chat --------------------------------------------------------------------------


def test_a_chat_is_deleted_with_what_was_remembered_of_it(
    new_tab: NewTab, new_user: NewUser, model: ModelServer, store: Store
) -> None:
    ada = new_tab()
    bob = new_tab(new_user(), ada.page.url)  # another user, at the same address
    for tab in (ada, bob):
        tab.say(TOLD)
        expect(tab.stored).to_have_count(1)
    elsewhere = new_tab(new_user(ada.user), ada.page.url)
    expect(elsewhere.stored).to_have_count(1)
    ada.begins_anew()
    ada.say("Hello.")
    expect(ada.stored).to_have_count(1)

    ada.deletes(TOLD)
    expect(ada.receipt).to_have_text(f"“{TOLD}” is deleted: turns 1, memories 1.")
    for tab in (ada, elsewhere):
        expect(tab.chats).to_have_text(["Hello."])
    expect(elsewhere.stored).to_have_count(0)
    expect(ada.stored).to_have_count(1)
    expect(bob.chats).to_have_text([TOLD])
    assert [one.turns for one in store.conversations(ada.user)] == [1]

    ada.say("What is my cat called?")
    expect(ada.stored).to_have_count(2)
    expect(ada.recalled).to_have_count(0)
    assert "Tom" not in str(model.requests[-1].messages)


def test_the_chat_that_is_open_is_deleted_and_may_be_begun_anew(tab: Tab, store: Store) -> None:
    tab.say(TOLD)
    expect(tab.stored).to_have_count(1)
    tab.deletes(TOLD)
    expect(tab.page.get_by_text("What would you like to talk about?")).to_be_visible()
    expect(tab.chats).to_have_count(0)
    assert store.conversations(tab.user) == []
    tab.say("Hello again")
    expect(tab.stored).to_have_count(1)
    expect(tab.chats).to_have_text(["Hello again"])


def test_deleted_elsewhere_while_an_answer_streams(
    new_tab: NewTab, new_user: NewUser, model: ModelServer, store: Store, hold: threading.Event
) -> None:
    tab = new_tab()
    tab.say(TOLD)
    expect(tab.stored).to_have_count(1)
    elsewhere = new_tab(new_user(tab.user))
    model.script(Reply("A fine name.", hold=hold))
    tab.say("Is it a fine name?")
    expect(tab.answers.last).to_have_text("A")
    elsewhere.deletes(TOLD)
    expect(elsewhere.receipt).to_contain_text("is deleted")
    hold.set()
    expect(tab.note).to_have_text("This chat was deleted meanwhile, so nothing of this is stored.")
    assert store.conversations(tab.user) == []
    tab.page.reload()  # the message is not sent again, either
    expect(tab.page.get_by_text("What would you like to talk about?")).to_be_visible()
    assert len(model.requests) == 2


def test_who_says_no_deletes_nothing(tab: Tab) -> None:
    tab.say(TOLD)
    expect(tab.stored).to_have_count(1)
    tab.page.once("dialog", lambda dialog: dialog.dismiss())
    tab.page.get_by_role("button", name=f"Delete {TOLD}").click()
    expect(tab.receipt).to_be_hidden()
    tab.page.reload()
    expect(tab.stored).to_have_count(1)


# ---- The end of it all --------------------------------------------------------------------------


def test_forgotten_nothing_is_left(
    new_tab: NewTab, new_user: NewUser, model: ModelServer, store: Store
) -> None:
    ada, bob = new_tab(), new_tab()
    for tab in (ada, bob):
        tab.say(TOLD)
        expect(tab.stored).to_have_count(1)
        tab.begins_anew()
        tab.say("What is my cat called?")
        expect(tab.stored).to_have_count(1)
        expect(tab.recalled).to_have_count(1)
    elsewhere = new_tab(new_user(ada.user), ada.page.url)
    expect(elsewhere.stored).to_have_count(1)

    ada.forgets()
    expect(ada.receipt).to_have_text(
        f"{ada.user} is forgotten: chats 2, turns 2, memories 2. Nothing is left."
    )
    for tab in (ada, elsewhere):
        expect(tab.page.get_by_text("What would you like to talk about?")).to_be_visible()
        expect(tab.chats).to_have_count(0)
        expect(tab.stored).to_have_count(0)
    expect(bob.chats).to_have_count(2)

    ada.say("What is my cat called?")
    expect(ada.stored).to_have_count(1)
    expect(ada.recalled).to_have_count(0)
    assert [one["role"] for one in model.requests[-1].messages] == ["system", "user"]
    assert [one.turns for one in store.conversations(ada.user)] == [1]


def test_who_says_no_is_not_forgotten(tab: Tab) -> None:
    tab.say(TOLD)
    expect(tab.stored).to_have_count(1)
    tab.page.once("dialog", lambda dialog: dialog.dismiss())
    tab.page.get_by_role("button", name="Forget me").click()
    expect(tab.receipt).to_be_hidden()
    tab.page.reload()
    expect(tab.stored).to_have_count(1)


def test_forgotten_elsewhere_while_an_answer_streams(
    new_tab: NewTab, new_user: NewUser, model: ModelServer, store: Store, hold: threading.Event
) -> None:
    tab = new_tab()
    elsewhere = new_tab(new_user(tab.user))
    model.script(Reply("A fine name.", hold=hold))
    tab.say(TOLD)
    tab.sees(TOLD, "A")
    elsewhere.forgets()
    expect(elsewhere.receipt).to_contain_text("Nothing is left.")
    hold.set()
    expect(tab.note).to_have_text("This chat was deleted meanwhile, so nothing of this is stored.")
    tab.sees(TOLD, "A fine name.")
    tab.page.reload()  # the message is not sent again, either
    expect(tab.page.get_by_text("What would you like to talk about?")).to_be_visible()
    assert len(model.requests) == 1
    assert store.conversations(tab.user) == []
    assert store.erase(tab.user, verify=True).keys <= 1  # the note of the erasure

    tab.say("Hello again")
    expect(tab.stored).to_have_count(1)
    expect(tab.chats).to_have_text(["Hello again"])


def test_forgotten_in_the_tab_in_which_an_answer_streams(
    tab: Tab, model: ModelServer, store: Store
) -> None:
    left = threading.Event()
    model.script(Reply(events=endless(left)))  # type: ignore[arg-type]  # iterated once
    tab.say(TOLD)
    expect(tab.answers).to_contain_text("more")
    tab.forgets()
    expect(tab.note).to_have_text("Stopped. This is not stored.")
    expect(tab.receipt).to_contain_text("Nothing is left.")
    assert left.wait(SECONDS), "the model is still asked"
    tab.page.reload()
    expect(tab.page.get_by_text("What would you like to talk about?")).to_be_visible()
    assert len(model.requests) == 1
    assert store.conversations(tab.user) == []
