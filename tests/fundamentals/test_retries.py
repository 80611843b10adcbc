"""A turn id makes an append safe to repeat: the same turn is stored once."""

from __future__ import annotations

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup


def test_the_same_turn_twice(store: Store) -> None:
    chat = store.conversation("ada")

    first = chat.append("Hi", turn_id="request-7")
    again = chat.append("Hi", turn_id="request-7")

    assert not first.duplicate
    assert again.duplicate
    assert len(chat.read()) == 1


def test_two_equal_messages_are_two(store: Store) -> None:
    chat = store.conversation("ada")

    chat.append("Hi")  # each append has a random turn id of its own
    chat.append("Hi")

    assert len(chat.read()) == 2
