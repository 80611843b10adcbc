"""Rewinding takes the newest turns back; forking goes on from a copy."""

from __future__ import annotations

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup


def test_the_last_turn_is_undone_and_given_back(store: Store) -> None:
    chat = store.conversation("ada")
    chat.append("right")
    chat.append("wrong")

    (undone,) = chat.rewind()

    assert undone.messages == [{"role": "user", "content": "wrong"}]
    assert [message["content"] for message in chat.read()] == ["right"]


def test_a_copy_goes_its_own_way(store: Store) -> None:
    chat = store.conversation("ada")
    chat.append("once upon a time")
    chat.append("there was a king")

    other = chat.fork("ada, another ending", upto=1)
    other.append("there was a queen")

    assert [message["content"] for message in chat.read()][-1] == "there was a king"
    assert [message["content"] for message in other.read()] == [
        "once upon a time",
        "there was a queen",
    ]
