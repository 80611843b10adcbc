"""A window is how much is read: whole turns, counted from the newest."""

from __future__ import annotations

import pytest

from turnstore import Store, Window

pytestmark = pytest.mark.one_setup


def test_the_newest_turns(store: Store) -> None:
    chat = store.conversation("ada")
    for number in range(1, 6):
        chat.append(f"message {number}")

    history = chat.read(Window(turns=2))

    assert [message["content"] for message in history] == ["message 4", "message 5"]
    assert history.has_older


def test_a_limit_of_messages_cuts_no_turn(store: Store) -> None:
    chat = store.conversation("ada")
    chat.append(["question 1", {"role": "assistant", "content": "answer 1"}])
    chat.append(["question 2", {"role": "assistant", "content": "answer 2"}])

    history = chat.read(Window(messages=3))  # three would begin with an answer

    assert [message["content"] for message in history] == ["question 2", "answer 2"]


def test_the_newest_turn_is_never_cut(store: Store) -> None:
    chat = store.conversation("ada")
    chat.append(["one", "two", "three"])

    assert len(chat.read(Window(messages=1))) == 3
