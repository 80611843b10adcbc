"""Replies that no provider should send, and that some do: none may end a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from turnstore import Window
from turnstore.clients._calling import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import AsyncStore

NAN = float("nan")


@pytest.mark.one_setup
@pytest.mark.parametrize("calls", [True, 5, 1.5, "call", {"id": "c"}, [None], [{"id": None}]])
async def test_a_turn_with_odd_calls_can_be_read_again(store: AsyncStore, calls: Any) -> None:
    chat = store.conversation("ada")
    await chat.append([{"role": "assistant", "content": "hm", "tool_calls": calls}])
    async with chat.turn("Go on.") as turn:
        turn.reply("Gladly.")
    assert len(await chat.read()) == 3


@pytest.mark.one_setup
async def test_what_a_client_does_to_its_messages_is_not_stored(store: AsyncStore) -> None:
    chat = store.conversation("ada")
    async with chat.turn({"role": "user", "content": "q", "more": {"a": 1}}) as turn:
        turn.messages[-1]["cache"] = NAN
        turn.messages[-1]["more"]["a"] = 2
        turn.reply("a")
        turn.messages[-1]["cache"] = NAN
    assert await chat.read() == [
        {"role": "user", "content": "q", "more": {"a": 1}},
        {"role": "assistant", "content": "a"},
    ]


@pytest.mark.one_setup
@pytest.mark.parametrize("role", ["tool", "function"])
async def test_a_result_without_any_id_is_not_sent(store: AsyncStore, role: str) -> None:
    chat = store.conversation("ada")
    await chat.append([{"role": role, "content": "42"}])
    async with chat.turn("q") as turn:
        assert turn.messages == [{"role": "user", "content": "q"}]


@pytest.mark.one_setup
async def test_a_request_longer_than_the_window_loses_nothing(store: AsyncStore) -> None:
    chat = store.conversation("ada")
    for number in range(4):
        await chat.append([{"role": "user", "content": f"q{number}"}, said(f"a{number}")])
    told = await chat.read()
    window = Window(turns=1)
    async with chat.turn([*told, {"role": "user", "content": "new"}], window=window) as turn:
        assert turn.new == [{"role": "user", "content": "new"}]
    unknown = [{"role": "user", "content": "never stored"}, said("nor this"), *told[-2:]]
    async with chat.turn([*unknown, {"role": "user", "content": "new"}], window=window) as turn:
        assert turn.new[:2] == unknown[:2]


@pytest.mark.one_setup
@pytest.mark.parametrize("count", [-1, 2**63, 10**10, True])
async def test_no_count_of_tokens_ruins_a_conversation(
    new_store: Callable[..., AsyncStore], count: Any
) -> None:
    chat = new_store(count_tokens=lambda _: count).conversation("ada")
    with pytest.raises(ValueError, match="a count is an int"):
        await chat.append("q")
    assert await chat.read() == []


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


@pytest.mark.one_setup
def test_a_stream_that_cannot_be_folded_is_passed_on(
    make_store: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        complete = True

        def add(self, event: dict[str, Any]) -> None:
            raise TypeError(event)

        def reply(self) -> dict[str, Any]:
            raise AssertionError

    def read(reply: dict[str, Any]) -> Any:
        raise AssertionError(reply)

    call = Call("q", format="openai.chat", read=read, folding=Broken(), model=dict, raw="")
    call.see('{"choices": []}')
    with make_store().conversation("ada").turn("q") as turn:
        call.keep_stream(turn)
    assert turn.saved is None
    assert "cannot be folded" in caplog.text
