"""What is appended is read again, by anybody who names the same conversation."""

from __future__ import annotations

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup


def test_a_conversation_remembers(store: Store) -> None:
    chat = store.conversation("ada")

    chat.append({"role": "user", "content": "My name is Ada."})
    chat.append({"role": "assistant", "content": "Hello Ada."})

    assert chat.read() == [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada."},
    ]


def test_text_is_a_message_of_the_user(store: Store) -> None:
    chat = store.conversation("ada")

    chat.append("My name is Ada.")

    assert chat.read() == [{"role": "user", "content": "My name is Ada."}]


def test_a_handle_is_only_a_name(store: Store) -> None:
    store.conversation("ada").append("Hi")

    assert len(store.conversation("ada").read()) == 1
    assert store.conversation("bob").read() == []
