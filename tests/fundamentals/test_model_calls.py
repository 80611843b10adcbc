"""A pending turn is a memory around one call of any model: read before, save after."""

from __future__ import annotations

from typing import Any

import pytest

from turnstore import Store

pytestmark = pytest.mark.one_setup


def model(messages: list[dict[str, Any]]) -> str:
    """Stand in for any client of any provider."""
    asked = [message["content"] for message in messages if message["role"] == "user"]
    return f"You said: {', then '.join(asked)}."


def test_the_model_sees_what_was_said_before(store: Store) -> None:
    chat = store.conversation("ada")

    with chat.turn("My name is Ada.") as turn:
        turn.reply(model(turn.messages))
    with chat.turn("What is my name?") as turn:
        turn.reply(model(turn.messages))

    assert chat.read()[-1]["content"] == "You said: My name is Ada., then What is my name?."


def test_a_call_that_fails_leaves_nothing(store: Store) -> None:
    chat = store.conversation("ada")

    def talk() -> None:
        with chat.turn("Hi"):
            raise ConnectionError("the model does not answer")

    with pytest.raises(ConnectionError):
        talk()

    assert chat.read() == []


def test_instructions_are_sent_each_time_and_never_stored(store: Store) -> None:
    chat = store.conversation("ada")

    with chat.turn(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    ) as turn:
        assert turn.messages[0] == {"role": "system", "content": "Be brief."}
        turn.reply("Hello.")

    assert [message["role"] for message in chat.read()] == ["user", "assistant"]
