"""The asyncio classes have the names, signatures and texts of the sync ones."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import turnstore

PAIRS = [
    (turnstore.Store, turnstore.AsyncStore),
    (turnstore.Conversation, turnstore.AsyncConversation),
    (turnstore.PendingTurn, turnstore.AsyncPendingTurn),
]
IDS = ["Store", "Conversation", "PendingTurn"]

# What may differ: who waits, and what things are called on the other side.
SAME_WORDS = [
    (r"\ban? (a?sync) one\b", "one of the other kind"),
    (r"\ban async context", "a context"),
    (r"\basync ", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=redis_client)", ""),
    (r"redis\.asyncio\.", "redis."),
    (r"\ban asyncio\b", "a sync"),
    (r"\basyncio\b", "sync"),
    (r"\btasks\b", "threads"),
    (r"\bTasks\b", "Threads"),
    (r"\bamodel\(", "model("),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\baclose\b", "close"),
    (r"  # doctest: \+SKIP", ""),
]
# What a framework that is async alone is given.
ONLY_ASYNC_NAMES = {"agents_session"}
# What waiting alone makes worth saying, sentence by sentence.
ONLY_ASYNC = [
    "A save that has begun is finished before a cancellation goes on.",
    "A cancellation waits until the save is done.",
]


def plain(text: str | None) -> str:
    text = " ".join((text or "").split())
    for sentence in ONLY_ASYNC:
        text = text.replace(sentence, "")
    for pattern, word in SAME_WORDS:
        text = re.sub(pattern, word, text)
    # `(await x).y` and `await x.y(...)` need brackets that `x.y` does not.
    return re.sub(r"[()\s]", "", text)


def names(kind: type) -> set[str]:
    found = {name for name in dir(kind) if not name.startswith("_")}
    return found | {
        re.sub("^__a", "__", name) for name in dir(kind) if re.match("__a?(enter|exit)__", name)
    }


def members(kind: type) -> dict[str, Any]:
    return {
        name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")
    }


def signature(function: Any) -> str:
    function = function.__func__ if isinstance(function, classmethod) else function
    return plain(str(inspect.signature(function)))


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_the_names_are_equal(sync: type, asyncio_: type) -> None:
    assert names(sync) == names(asyncio_) - ONLY_ASYNC_NAMES


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_the_kinds_are_equal(sync: type, asyncio_: type) -> None:
    for name, member in members(sync).items():
        assert type(member) is type(members(asyncio_)[name]), name


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_the_signatures_are_equal(sync: type, asyncio_: type) -> None:
    assert signature(sync.__init__) == signature(asyncio_.__init__)  # type: ignore[misc]  # only looked at
    for name, member in members(sync).items():
        if not isinstance(member, property):
            assert signature(member) == signature(members(asyncio_)[name]), name


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_the_texts_are_equal(sync: type, asyncio_: type) -> None:
    pairs = [("the class", sync.__doc__, asyncio_.__doc__)]
    pairs += [
        (name, one.__doc__, members(asyncio_)[name].__doc__) for name, one in members(sync).items()
    ]
    for name, one, other in pairs:
        said, twin = plain(one), plain(other)
        if (sync.__name__, name) == ("PendingTurn", "the class"):  # the examples differ
            said, twin = (text.partition("Example:")[0] for text in (said, twin))
        assert said == twin, f"{sync.__name__}.{name}"


@pytest.mark.parametrize("sync, asyncio_", PAIRS, ids=IDS)
def test_every_public_member_says_what_it_does(sync: type, asyncio_: type) -> None:
    for kind in (sync, asyncio_):
        assert kind.__doc__
        silent = [name for name, member in members(kind).items() if not member.__doc__]
        assert not silent


SENDS_NOTHING = {
    *("conversation", "from_url", "turn", "wrap", "agents_session"),
    *("reply", "follow", "amend"),
}


def test_what_sends_something_is_awaited_and_nothing_else_is() -> None:
    for _, kind in PAIRS:
        for name, member in members(kind).items():
            if not isinstance(member, property):
                assert inspect.iscoroutinefunction(member) == (name not in SENDS_NOTHING), name
