"""A browser, and the chat of examples/web with its workers, a Redis and a model."""

from __future__ import annotations

import re
import shutil
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

from tests.servers import found
from tests.web.running import PYTHON, SECONDS, Application, application
from turnstore import Store, Window
from turnstore.server import EmbeddedServer, free_port
from turnstore.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

expect.set_options(timeout=SECONDS * 1000)

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Give the Chromium of this machine, without a window."""
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    if binary is None:
        found.lack("no Chromium on this machine (on Debian or Ubuntu: apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=binary, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def redis() -> Iterator[EmbeddedServer]:
    """Give a Redis that the tests may end; what it has stored comes back with it."""
    if not found.binaries():
        found.lack("no server binary on this machine")
    with EmbeddedServer(binary=found.binaries()[0], appendonly=True) as server:
        yield server


@pytest.fixture(scope="session")
def _model() -> Iterator[ModelServer]:
    with ModelServer() as model:
        yield model


@pytest.fixture
def model(_model: ModelServer) -> Iterator[ModelServer]:
    """Give the model that the workers ask; what a test scripts is asked for in the test."""
    _model.requests.clear()
    yield _model
    assert not _model._desk.left, "more was scripted than the model was asked for"


@pytest.fixture(scope="session")
def app(
    redis: EmbeddedServer, _model: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    """Give the chat, with two workers."""
    port = free_port()
    log = tmp_path_factory.mktemp("chat") / "log"
    with application(
        [*PYTHON, "-m", "examples.web", "--port", str(port), "--workers", "2"],
        f"http://127.0.0.1:{port}",
        log,
        REDIS_URL=redis.url,
        OPENAI_BASE_URL=_model.base_url,
        OPENAI_API_KEY="none-is-needed",
    ) as running:
        yield running
    said = log.read_text()
    assert not re.search(r"Traceback|Exception|unclosed|never (awaited|retrieved)", said), said


@pytest.fixture
def new_user(browser: Browser, app: Application) -> Iterator[Callable[..., BrowserContext]]:
    """Make browsers: each of a new user who has said a name, or of one with the given name.

    With an empty name, it is one in which nobody has said anything yet.
    """
    users: list[BrowserContext] = []

    def make(name: str | None = None) -> BrowserContext:
        users.append(browser.new_context())
        name = f"Ada {uuid4().hex[:8]}" if name is None else name
        if name:
            users[-1].add_cookies([{"name": "user", "value": quote(name), "url": app.url}])
        return users[-1]

    yield make
    for user in users:
        user.close()


@dataclass
class Tab:
    """A tab with a conversation, as a person sees it."""

    page: Page

    @property
    def user(self) -> str:
        """The name of who asks, which is the owner of what is said."""
        cookies = self.page.context.cookies()
        return unquote(next(one.get("value", "") for one in cookies if one.get("name") == "user"))

    @property
    def chats(self) -> Locator:
        """The links in the list of chats."""
        return self.page.get_by_label("Your chats").get_by_role("link")

    @property
    def recalled(self) -> Locator:
        """What was recalled from other chats."""
        return self.page.locator(".recalled")

    @property
    def receipt(self) -> Locator:
        """What is said of an erasure."""
        return self.page.locator("#receipt")

    @property
    def answers(self) -> Locator:
        """The model's messages."""
        return self.page.locator(".assistant")

    @property
    def note(self) -> Locator:
        """What is said below a turn."""
        return self.page.locator(".note")

    @property
    def stored(self) -> Locator:
        """The turns of which the page knows that they are stored."""
        return self.page.locator("[data-stored]")

    def say(self, text: str) -> None:
        """Write a message and send it."""
        self.page.get_by_label("Your message").fill(text)
        self.page.keyboard.press("Enter")

    def begins_anew(self) -> None:
        """Begin another chat."""
        self.page.get_by_role("link", name="New chat").click()
        expect(self.page.get_by_text("What would you like to talk about?")).to_be_visible()

    def deletes(self, title: str) -> None:
        """Press the button that deletes a chat, and say yes."""
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.get_by_role("button", name=f"Delete {title}").click()

    def forgets(self) -> None:
        """Press the button that deletes all of the user, and say yes."""
        self.page.once("dialog", lambda dialog: dialog.accept())
        self.page.get_by_role("button", name="Forget me").click()

    def tries_again(self) -> None:
        """Press the button that asks once more."""
        self.page.get_by_role("button", name="Try again").click()

    def sees(self, *texts: str | re.Pattern[str]) -> None:
        """Wait until just these messages are there."""
        expect(self.page.locator(".user, .assistant")).to_have_text(list(texts))


@pytest.fixture
def new_tab(app: Application, new_user: Callable[..., BrowserContext]) -> Callable[..., Tab]:
    """Open tabs: of a new user, or of one; with a new conversation, or with one."""

    def make(user: BrowserContext | None = None, url: str = "") -> Tab:
        page = (user or new_user()).new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.goto(url or app.url)
        return Tab(page)

    return make


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    """Give a tab with a new conversation of a new user."""
    return new_tab()


@pytest.fixture
def stored(redis: EmbeddedServer) -> Iterator[Callable[[Tab], list[str]]]:
    """Read what is stored of the conversation in a tab, past the application: all texts."""
    with Store.from_url(redis.url, name="web-example") as store:

        def read(tab: Tab) -> list[str]:
            chat_id = tab.page.url.rpartition("/")[2]
            messages = store.conversation(chat_id, owner=tab.user).read(Window())
            return [message["content"] for message in messages]

        yield read


@pytest.fixture
def hold() -> Iterator[threading.Event]:
    """Give what a scripted reply waits for, after its first word; set at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


def endless(left: threading.Event) -> Iterator[dict[str, Any]]:
    """Stream an answer without an end, and set `left` when nobody waits for it any more."""
    try:
        for word in _ones():
            delta = {"role": "assistant", "content": word}
            choice = {"index": 0, "delta": delta, "finish_reason": None}
            yield {"id": "1", "object": "chat.completion.chunk", "created": 1, "choices": [choice]}
    finally:  # the connection broke
        left.set()


def _ones() -> Iterator[str]:
    yield "One"
    while True:
        time.sleep(0.02)
        yield " more"
