"""How long a conversation lives, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup


def test_a_conversation_outlives_its_last_append_by_its_ttl(
    make_store: Callable[..., Store],
) -> None:
    chat = make_store(ttl=timedelta(hours=1)).conversation("ada")

    chat.append("Hi")

    left = chat.stat().ttl
    assert left is not None
    assert timedelta(minutes=59) < left <= timedelta(hours=1)


def test_the_oldest_turns_make_room(make_store: Callable[..., Store]) -> None:
    chat = make_store(max_messages=3).conversation("ada")

    for number in range(1, 6):
        chat.append(f"message {number}")

    assert [message["content"] for message in chat.read()] == [
        "message 3",
        "message 4",
        "message 5",
    ]


def test_a_conversation_can_be_shortened_and_deleted(store: Store) -> None:
    chat = store.conversation("ada")
    for number in range(1, 6):
        chat.append(f"message {number}")

    assert chat.trim(turns=2) == 3
    assert len(chat.read()) == 2
    assert chat.clear()
    assert chat.read() == []
