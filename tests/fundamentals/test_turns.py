"""A turn is one or more messages that were saved together. Nothing ever parts them."""

from __future__ import annotations

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup


def test_one_append_is_one_turn(store: Store) -> None:
    chat = store.conversation("ada")

    chat.append([{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}])
    chat.append("And 2 + 2?")

    first, second = chat.turns()
    assert (first.number, len(first.messages)) == (1, 2)
    assert (second.number, len(second.messages)) == (2, 1)


def test_a_turn_may_be_saved_in_pieces(store: Store) -> None:
    chat = store.conversation("ada")

    chat.append("1 + 1?")
    chat.append({"role": "assistant", "content": "2"}, continues=True)

    (turn,) = chat.turns()
    assert len(turn.messages) == 2


def test_a_turn_carries_what_is_known_of_it(store: Store) -> None:
    chat = store.conversation("ada")

    chat.append("Hi", meta={"model": "gpt-x", "cost": 0.01})

    (turn,) = chat.turns()
    assert turn.meta == {"model": "gpt-x", "cost": 0.01}


def test_pages_go_from_the_newest_backwards(store: Store) -> None:
    chat = store.conversation("ada")
    for number in range(1, 6):
        chat.append(f"message {number}")

    newest = chat.turns(2)
    older = chat.turns(2, before=newest.cursor)

    assert [turn.number for turn in newest] == [4, 5]
    assert [turn.number for turn in older] == [2, 3]
