"""A revision names the state of a conversation. It comes with every read and every append."""

from __future__ import annotations

import pytest

from turnstore import ConflictError, Store, TurnConflictError

pytestmark = pytest.mark.one_setup


def test_an_append_that_wants_nobody_between(store: Store) -> None:
    chat = store.conversation("ada")
    revision = chat.read().revision

    chat.append("I was faster.")

    with pytest.raises(ConflictError):
        chat.append("I read it before.", expected_revision=revision)
    assert len(chat.read()) == 1


def test_by_default_both_turns_are_kept(store: Store) -> None:
    chat = store.conversation("ada")

    with chat.turn("slow") as turn:
        chat.append("fast")
        turn.reply("done")

    assert [message["content"] for message in chat.read()] == ["fast", "slow", "done"]


def test_a_turn_that_wants_nobody_between_keeps_its_answer(store: Store) -> None:
    chat = store.conversation("ada")

    def talk() -> None:
        with chat.turn("slow", on_conflict="reject") as turn:
            chat.append("fast")
            turn.reply("an expensive answer")

    with pytest.raises(TurnConflictError) as found:
        talk()
    assert found.value.reply == "an expensive answer"
