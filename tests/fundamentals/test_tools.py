"""A tool call without its result is never sent to a model, nor the reverse."""

from __future__ import annotations

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup

CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "time", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "12:00"}


def test_a_loop_in_one_turn(store: Store) -> None:
    chat = store.conversation("ada")

    with chat.turn("What time is it?") as turn:
        turn.reply(CALL)
        turn.reply(RESULT)
        turn.reply("Noon.")

    assert len(chat.turns()) == 1


def test_a_result_continues_the_turn_that_waits_for_it(store: Store) -> None:
    chat = store.conversation("ada")
    with chat.turn("What time is it?") as turn:
        turn.reply(CALL)

    with chat.turn(RESULT) as turn:
        assert [message["role"] for message in turn.messages] == ["user", "assistant", "tool"]
        turn.reply("Noon.")

    assert len(chat.turns()) == 1


def test_a_call_that_nobody_answered_is_left_out(store: Store) -> None:
    chat = store.conversation("ada")
    with chat.turn("What time is it?") as turn:
        turn.reply(CALL)

    with chat.turn("Never mind. How are you?") as turn:
        assert [message["content"] for message in turn.messages] == ["Never mind. How are you?"]
