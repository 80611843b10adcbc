"""What is async does not go into a context for a sync store."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from turnstore.context import Context, Entities, Query, Retrieval, Rewrite, Summary, Topics

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnstore import PendingTurn


def answer(_: object) -> Any:
    pytest.fail("nobody was to ask")


async def answer_soon(*_: object) -> str:
    return "in a moment"


class Later:
    """Called like a function, and awaited."""

    async def __call__(self, *_: object) -> str:
        return "in a moment"


@pytest.mark.parametrize(
    "part, name",
    [
        ({"sources": [answer_soon]}, "answer_soon"),
        ({"sources": [Later()]}, "Later"),
        ({"sources": [Retrieval(answer_soon)]}, "answer_soon"),
        ({"after": [answer_soon]}, "answer_soon"),
        ({"after": [Later()]}, "Later"),
        ({"rewrite": Rewrite(answer_soon)}, "answer_soon"),
        ({"entities": Entities(answer_soon)}, "answer_soon"),
        ({"topics": Topics(answer_soon)}, "answer_soon"),  # type: ignore[arg-type]  # not asked
        ({"topics": Topics(idle=timedelta(1), on_boundary=answer_soon)}, "answer_soon"),
        ({"summary": Summary(answer_soon)}, "the model of the summary .answer_soon."),
    ],
)
async def test_an_async_part_on_a_sync_store_is_refused_when_a_turn_is_made(
    make_store: Callable[..., Any],
    make_async_store: Callable[..., Any],
    part: dict[str, Any],
    name: str,
) -> None:
    context = Context(**part)
    chat = make_store().conversation("ada")
    with pytest.raises(TypeError, match=f"^{name} is async, and this store is not"):
        chat.turn("hi", context=context)
    asked = chat.wrap(answer, context=context)
    with pytest.raises(TypeError, match="is async"):
        asked([{"role": "user", "content": "hi"}])
    assert chat.read() == []
    assert context.counts == {}
    make_async_store().conversation("ada").turn("hi", context=context)


async def test_a_function_that_turns_out_to_be_async_is_said_in_the_log(
    make_store: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    def source(query: Query) -> Any:
        return answer_soon(query)

    context = Context(sources=[source])
    turn: PendingTurn
    with make_store().conversation("ada").turn("hi", context=context) as turn:
        turn.reply("hi")
    assert "is async, and this store is not" in caplog.text
    assert context.counts == {"recall": 1}
