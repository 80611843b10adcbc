"""Run flows that ask functions, and make histories, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.histories import Json, assistant, raw_elements, user
from turnstore import History, _element

if TYPE_CHECKING:
    from collections.abc import Generator

    from turnstore._calls import Ask


def drive(flow: Generator[Ask, Any, Any]) -> Any:
    """Run a flow to its end; what a function raises goes back into the flow."""
    answer: Any = None
    error: Exception | None = None
    try:
        while True:
            ask = flow.throw(error) if error else flow.send(answer)
            error = None
            try:
                answer = ask.function(*ask.arguments)
            except Exception as raised:  # noqa: BLE001 - as a store does it
                error = raised
    except StopIteration as stop:
        return stop.value


def said(*questions: str, **metas: dict[str, Any]) -> History:
    """Make a history of one turn for each question; `m2=` is the meta of the second turn."""
    turns = [[[user(question), assistant(f"On {question}")]] for question in questions]
    return history_of(turns, metas)


def history_of(turns: list[list[list[Json]]], metas: dict[str, dict[str, Any]]) -> History:
    rows = _element.parse(raw_elements(turns))
    for row in rows:
        meta = metas.get(f"m{row[2]}")
        if meta is not None:
            row.append(meta)
    return History(rows, 0, has_older=False)


class Recorder:
    """A function of the caller's: remembers what it was given, answers what it is told."""

    def __init__(self, *answers: Any) -> None:
        self.given: list[Any] = []
        self._answers = list(answers)

    def __call__(self, given: Any) -> Any:
        self.given.append(given)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer
