"""Wrong arguments are refused before anything is sent, alike by both clients."""

from __future__ import annotations

import asyncio
import inspect
import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import redis
import redis.asyncio

from turnstore import AsyncStore, LimitError, Store, Window

if TYPE_CHECKING:
    from collections.abc import Callable


class Untouched:
    """A client that nothing may be sent through."""

    def execute_command(self, *_: object, **__: object) -> None:
        raise AssertionError("something was sent")


CLIENT: Any = Untouched()
OPTIONS: dict[str, Any] = {"name": "app", "max_turn_messages": 3, "max_turn_bytes": 200}


@pytest.fixture(params=[Store, AsyncStore])
def chat(request: pytest.FixtureRequest) -> Any:
    return request.param(CLIENT, **OPTIONS).conversation("c")


def do(answer: Any) -> Any:
    """Wait for what an async method gives."""
    return asyncio.run(answer) if inspect.iscoroutine(answer) else answer


def refused(
    error: type[Exception] | tuple[type[Exception], ...],
    what: Callable[[], Any],
    match: str | None = None,
) -> None:
    with pytest.raises(error, match=match):
        do(what())


# Stores


@pytest.mark.parametrize("kind", [Store, AsyncStore])
@pytest.mark.parametrize(
    "options, error",
    [
        ({"name": ""}, ValueError),
        ({"name": None}, TypeError),
        ({"name": "\ud800"}, ValueError),
        ({"prefix": "{a}"}, ValueError),
        ({"secret": b"short"}, ValueError),
        ({"secret": "0123456789abcdef"}, TypeError),
        ({"max_messages": 0}, ValueError),
        ({"max_messages": -1}, ValueError),
        ({"max_messages": 1.5}, TypeError),
        ({"max_messages": True}, TypeError),
        ({"max_messages": "10"}, TypeError),
        ({"max_turn_messages": 0}, ValueError),
        ({"max_turn_bytes": -5}, ValueError),
        ({"ttl": 60}, TypeError),
        ({"ttl": timedelta(0)}, ValueError),
        ({"ttl": timedelta(seconds=-1)}, ValueError),
        ({"ttl": timedelta(microseconds=999)}, ValueError),
        ({"count_tokens": 4}, TypeError),
    ],
)
def test_what_a_store_refuses(kind: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        kind(CLIENT, **{"name": "app", **options})


def test_a_store_needs_a_name() -> None:
    with pytest.raises(TypeError, match="name"):
        Store(CLIENT)  # type: ignore[call-arg]  # what is tested


def test_options_go_by_name() -> None:
    with pytest.raises(TypeError):
        Store(CLIENT, "app")  # type: ignore[call-arg]  # what is tested


@pytest.mark.parametrize(
    "kind, client, says",
    [
        (Store, redis.asyncio.Redis(), "Store cannot use an asyncio client; use AsyncStore"),
        (AsyncStore, redis.Redis(), "AsyncStore cannot use a sync client; use Store"),
        (Store, redis.Redis().pipeline(), "Store takes a client; a pipeline"),
        (AsyncStore, redis.asyncio.Redis().pipeline(), "AsyncStore takes a client; a pipeline"),
        (Store, "redis://localhost", "Store takes a client of redis-py, not str"),
        (AsyncStore, None, "AsyncStore takes a client of redis-py, not NoneType"),
    ],
)
def test_what_is_no_client(kind: Any, client: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        kind(client, name="app")


@pytest.mark.parametrize("kind", [Store, AsyncStore])
@pytest.mark.parametrize(
    "url", ["", "localhost:6379", "http://localhost", "redis://localhost:port"]
)
def test_what_is_no_url(kind: Any, url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - redis-py's own words
        kind.from_url(url, name="app")


@pytest.mark.parametrize("kind", [Store, AsyncStore])
def test_from_url_checks_the_options_too(kind: Any) -> None:
    with pytest.raises(ValueError, match="max_messages=0"):
        kind.from_url("redis://host.invalid", name="app", max_messages=0)


@pytest.mark.parametrize(
    "id_, error", [("", ValueError), ("a\ud800", ValueError), (None, TypeError), (7, TypeError)]
)
def test_what_is_no_id(id_: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        Store(CLIENT, name="app").conversation(id_)


# Appends


@pytest.mark.parametrize("messages", [None, 1, b"hi", [None], [["hi"]], object(), [b"x"]])
def test_what_is_no_message(chat: Any, messages: Any) -> None:
    refused(TypeError, lambda: chat.append(messages))
    refused(TypeError, lambda: chat.turn(messages))


@pytest.mark.parametrize("content", [math.nan, math.inf, b"x", {1}, timedelta(1), {1: 2}, object()])
def test_what_is_no_json(chat: Any, content: Any) -> None:
    messages = ["fine", {"role": "user", "content": [content]}]
    refused(ValueError, lambda: chat.append(messages), "message 1.*content")
    refused(ValueError, lambda: chat.turn(messages), "message 1.*content")


def test_what_contains_itself(chat: Any) -> None:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = message
    refused(ValueError, lambda: chat.append(message), "contains itself")


def test_a_generator_that_fails_sends_nothing(chat: Any) -> None:
    def messages() -> Any:
        yield "one"
        raise ConnectionAbortedError

    refused(ConnectionAbortedError, lambda: chat.append(messages()))


@pytest.mark.parametrize(
    "turn_id", ["", " ", "a b", "a\n", "é", "x" * 65, "\x00", "\x7f", 'a"b', "a\\b"]
)
def test_what_is_no_turn_id(chat: Any, turn_id: str) -> None:
    refused(ValueError, lambda: chat.append("hi", turn_id=turn_id), "turn_id")
    refused(ValueError, lambda: chat.turn("hi", turn_id=turn_id), "turn_id")


@pytest.mark.parametrize("turn_id", [7, b"a", ["a"], True])
def test_a_turn_id_is_text(chat: Any, turn_id: Any) -> None:
    refused(TypeError, lambda: chat.append("hi", turn_id=turn_id), "turn_id is text")


@pytest.mark.parametrize(
    "revision", ["", "1", "-", "1-", "a-b", "1-a b", "1-" + "x" * 65, "-1-a", "1 -a", "00"]
)
def test_what_is_no_revision(chat: Any, revision: str) -> None:
    refused(ValueError, lambda: chat.append("hi", expected_revision=revision), "revision")
    refused(ValueError, lambda: chat.rewind(expected_revision=revision), "revision")


@pytest.mark.parametrize("revision", [0, 1, b"0"])
def test_a_revision_is_text(chat: Any, revision: Any) -> None:
    refused(TypeError, lambda: chat.append("hi", expected_revision=revision), "revision is text")


@pytest.mark.parametrize(
    "format_, error",
    [("", ValueError), ("a b", ValueError), ("x" * 33, ValueError), (1, TypeError)],
)
def test_what_is_no_format(chat: Any, format_: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.append("hi", format=format_), "format")
    refused(error, lambda: chat.turn("hi", format=format_), "format")


@pytest.mark.parametrize(
    "meta, error",
    [
        ({"a": {1}}, ValueError),
        ({1: 2}, ValueError),
        ({"a": math.nan}, ValueError),
        ([("a", 1)], TypeError),
    ],
)
def test_what_is_no_meta(chat: Any, meta: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.append("hi", meta=meta), "meta")


@pytest.mark.parametrize("meta", [{"a": {1}}, {1: 2}, [("a", 1)]])
def test_meta_of_a_turn_is_checked_before_the_model_is_paid(chat: Any, meta: Any) -> None:
    refused((ValueError, TypeError), lambda: chat.turn("hi", meta=meta))


def test_more_messages_than_a_turn_may_have(chat: Any) -> None:
    refused(
        LimitError,
        lambda: chat.append(["a"] * 4),
        "4 messages, and max_turn_messages is 3; nothing was written",
    )


def test_more_bytes_than_a_turn_may_have(chat: Any) -> None:
    refused(
        LimitError,
        lambda: chat.append("x" * 200),
        "2.. bytes, and max_turn_bytes is 200; nothing was written",
    )
    refused(LimitError, lambda: chat.append("é" * 100), "bytes")
    refused(LimitError, lambda: chat.append("x", meta={"a": "x" * 200}), "bytes")


@pytest.mark.parametrize("count", [-1, 1.5, None, "3"])
def test_what_is_no_count_of_tokens(count: Any) -> None:
    chat = Store(CLIENT, name="app", count_tokens=lambda _: count).conversation("c")
    refused(ValueError, lambda: chat.append("hi"), "token counter .* answered")


def test_an_error_of_the_callers_counter_comes_through() -> None:
    def count(message: dict[str, Any]) -> int:
        return int(message["tokens"])

    chat = Store(CLIENT, name="app", count_tokens=count).conversation("c")
    refused(KeyError, lambda: chat.append("hi"), "tokens")


# The rest


@pytest.mark.parametrize("window", [20, "all", {"turns": 3}, (1, 2)])
def test_what_is_no_window(chat: Any, window: Any) -> None:
    refused(TypeError, lambda: chat.read(window), "window is a Window")
    refused(TypeError, lambda: chat.turn("hi", window=window), "window is a Window")


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({"limit": 0}, ValueError),
        ({"limit": -1}, ValueError),
        ({"limit": 2**62}, ValueError),
        ({"before": 10**400}, ValueError),
        ({"limit": None}, TypeError),
        ({"limit": 1.0}, TypeError),
        ({"limit": True}, TypeError),
        ({"before": 0}, ValueError),
        ({"before": -1}, ValueError),
        ({"before": "3"}, TypeError),
    ],
)
def test_what_is_no_page(chat: Any, arguments: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.turns(**arguments))


@pytest.mark.parametrize(
    "arguments, error",
    [
        ({}, TypeError),
        ({"messages": -1}, ValueError),
        ({"turns": -1}, ValueError),
        ({"turns": 2**62}, ValueError),
        ({"messages": 1.0}, TypeError),
        ({"messages": 0.0}, TypeError),
        ({"messages": True}, TypeError),
        ({"messages": False}, TypeError),
        ({"messages": 5, "turns": False}, TypeError),
        ({"messages": 5, "turns": 0.0}, TypeError),
        ({"messages": 0, "turns": -5}, ValueError),
        ({"turns": "3"}, TypeError),
    ],
)
def test_what_no_trim_takes(chat: Any, arguments: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.trim(**arguments))


@pytest.mark.parametrize(
    "turns, error",
    [
        (0, ValueError),
        (-1, ValueError),
        (2**62, ValueError),
        (None, TypeError),
        (1.0, TypeError),
        (True, TypeError),
    ],
)
def test_what_no_rewind_takes(chat: Any, turns: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.rewind(turns))


@pytest.mark.parametrize(
    "ttl, error",
    [
        (60, TypeError),
        ("1h", TypeError),
        (timedelta(0), ValueError),
        (timedelta(microseconds=999), ValueError),
        (timedelta(days=-1), ValueError),
    ],
)
def test_what_is_no_time_to_live(chat: Any, ttl: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.expire(ttl), "ttl")


@pytest.mark.parametrize(
    "arguments, error",
    [(("",), ValueError), ((None,), TypeError), (("a\ud800",), ValueError), (("c",), ValueError)],
)
def test_what_is_no_target_of_a_fork(chat: Any, arguments: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.fork(*arguments))


@pytest.mark.parametrize(
    "upto, error",
    [(0, ValueError), (-1, ValueError), (1.0, TypeError), ("1", TypeError), (True, TypeError)],
)
def test_what_is_no_last_turn_of_a_fork(chat: Any, upto: Any, error: type[Exception]) -> None:
    refused(error, lambda: chat.fork("d", upto=upto))


@pytest.mark.parametrize("option", ["on_conflict", "on_load_error", "on_other_format"])
@pytest.mark.parametrize("value", ["", "RAISE", None, True, "serial"])
def test_what_is_no_policy_of_a_turn(chat: Any, option: str, value: Any) -> None:
    refused(ValueError, lambda: chat.turn("hi", **{option: value}), f"{option} is one of")


def test_a_turn_is_used_in_a_with_block(chat: Any) -> None:
    turn = chat.turn("hi")
    for look in ("messages", "new", "history", "revision"):
        with pytest.raises(RuntimeError, match="use it in a `with` block"):
            getattr(turn, look)
    with pytest.raises(RuntimeError, match="use it in a `with` block"):
        turn.reply("hi")
    with pytest.raises(RuntimeError, match="use it in a `with` block"):
        do(turn.save())
    assert turn.saved is None


def test_names_tell_nothing_of_the_id() -> None:
    chat = Store(CLIENT, name="secret-name", prefix="p").conversation("ada@example.com")
    assert "example" not in repr(chat) + chat.key
    assert "secret-name" not in repr(chat) + chat.key


def test_windows_are_values_of_any_size(chat: Any) -> None:
    assert chat.turn("hi", window=Window(turns=10**9)).turn_id
