"""Random operations on a store and on the model, which have to agree after each step."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.invariants.model import Conflict, IdTaken, Model, NotHeld
from tests.invariants.raw import look
from tests.waiting import wait_until
from turnstore import AsyncStore, ConflictError, Store, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.running import AsyncClient, Client, Server

NAMES = ("ada", "bob", "eve")
TTL = timedelta(hours=1)
MAX_MESSAGES = 40

names = st.sampled_from(NAMES)
contents = st.lists(st.text("xyé ", max_size=3), max_size=5)
# Few ids, so that they come again: among the newest 32, and after more than these.
ids = st.integers(0, 50).map("id-{}".format)
limits = st.one_of(st.none(), st.integers(1, MAX_MESSAGES + 2))
either = st.booleans()


def count_tokens(message: dict[str, Any]) -> int:
    return len(message["content"])


class Machine(RuleBasedStateMachine):
    """Two clients of one server, and a model of each conversation."""

    def __init__(
        self,
        server: Server,
        prefix: str,
        sync: Client,
        asynchronous: AsyncClient,
        runner: asyncio.Runner,
    ) -> None:
        super().__init__()
        self._server = server
        self._runner = runner
        settings: dict[str, Any] = {
            "name": f"machine-{uuid4().hex}",
            "prefix": prefix,
            "ttl": TTL,
            "max_messages": MAX_MESSAGES,
            "count_tokens": count_tokens,
        }
        self._stores = (Store(sync, **settings), AsyncStore(asynchronous, **settings))
        ttl_ms = TTL // timedelta(milliseconds=1)
        self._models = {name: Model(MAX_MESSAGES, ttl_ms) for name in NAMES}
        self._revisions = ["0", "7-never"]
        self._count = 0
        self._last: tuple[str, list[str], str, bool] | None = None

    def _do(self, on_async: bool, name: str, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: FBT001
        """Call a method of a conversation on one of the two clients."""
        chat: Any = self._stores[on_async].conversation(name)
        answer = getattr(chat, method)(*args, **kwargs)
        if not on_async:
            return answer

        async def wait() -> Any:
            return await answer

        return self._runner.run(wait())

    # writing

    @rule(on_async=either, name=names, said=contents, turn_id=ids, continues=either)
    def append(
        self, *, on_async: bool, name: str, said: list[str], turn_id: str, continues: bool
    ) -> None:
        self._append(on_async, name, said, turn_id, None, continues)
        self._last = (name, said, turn_id, continues)

    @rule(on_async=either, name=names, many=st.integers(1, 40))
    def append_many(self, *, on_async: bool, name: str, many: int) -> None:
        for _ in range(many):
            self._count += 1  # the same ids in each run, so that hypothesis can repeat it
            self._append(on_async, name, ["x"], f"many-{self._count}", None, continues=False)

    @rule(on_async=either, name=names, said=contents, turn_id=ids, continues=either, data=st.data())
    def append_expecting(  # noqa: PLR0913 (each is drawn)
        self,
        *,
        on_async: bool,
        name: str,
        said: list[str],
        turn_id: str,
        continues: bool,
        data: st.DataObject,
    ) -> None:
        expected = data.draw(self._some_revision(name))
        self._append(on_async, name, said, turn_id, expected, continues)

    @precondition(lambda self: self._last)
    @rule(on_async=either)
    def retry(self, *, on_async: bool) -> None:
        assert self._last
        name, said, turn_id, continues = self._last
        self._append(on_async, name, said, turn_id, None, continues)

    def _append(  # noqa: PLR0913, PLR0917 (the arguments of an append)
        self,
        on_async: bool,  # noqa: FBT001
        name: str,
        said: list[str],
        turn_id: str,
        expected: str | None,
        continues: bool,  # noqa: FBT001
    ) -> None:
        model = self._models[name]
        with self._both_refuse() as refused:
            refused(lambda: model.append(said, turn_id, expected, continues=continues))
            answer = self._do(
                on_async,
                name,
                "append",
                [{"role": "user", "content": content} for content in said],
                turn_id=turn_id,
                expected_revision=expected,
                continues=continues,
            )
            assert asdict(answer) == asdict(refused.answer)
            self._revisions.append(answer.revision)

    @rule(on_async=either, name=names, messages=limits, turns=limits)
    def trim(self, *, on_async: bool, name: str, messages: int | None, turns: int | None) -> None:
        if messages is None and turns is None:
            messages = 10
        dropped = self._models[name].trim(messages, turns)
        assert self._do(on_async, name, "trim", messages, turns=turns) == dropped

    @rule(on_async=either, name=names, turns=st.integers(1, 45), data=st.data())
    def rewind(self, *, on_async: bool, name: str, turns: int, data: st.DataObject) -> None:
        expected = data.draw(st.one_of(st.none(), self._some_revision(name)))
        model = self._models[name]
        before = {number: model.contents([number]) for number in model.turn_numbers}
        with self._both_refuse() as refused:
            refused(lambda: model.rewind(turns, expected))
            undone = self._do(on_async, name, "rewind", turns, expected_revision=expected)
            assert [turn.number for turn in undone] == refused.answer
            for turn in undone:
                assert [message["content"] for message in turn.messages] == before[turn.number]

    @precondition(lambda self: any(model.pieces for model in self._models.values()))
    @rule(on_async=either, turn_id=ids, by_id=either, data=st.data())
    def replace(self, *, on_async: bool, turn_id: str, by_id: bool, data: st.DataObject) -> None:
        held = [name for name in NAMES if self._models[name].pieces]
        name = data.draw(st.sampled_from(held))
        model = self._models[name]
        number = data.draw(st.sampled_from(model.turn_numbers))
        if by_id:  # the newest that has it
            named: Any = data.draw(st.sampled_from(model.pieces_of(number))).id
            number = [piece.turn for piece in model.pieces if piece.id == named][-1]
        else:
            (named,) = self._do(on_async, name, "turns", 1, before=number + 1)
        before = [one for one in model.turn_numbers if one < number]
        history = model.contents(model.window(None, 100, before))
        said = ["new", "answer"]
        with self._both_refuse() as refused:
            refused(lambda: model.replace(number, said, turn_id))
            shown, answer = self._turn(on_async, name, said, turn_id=turn_id, replaces=named)
            assert shown == history
            assert asdict(answer) == asdict(refused.answer)
            self._revisions.append(answer.revision)

    def _turn(
        self,
        on_async: bool,  # noqa: FBT001
        name: str,
        said: list[str],
        **options: Any,
    ) -> tuple[list[str], Any]:
        """Take a turn; give what was before it, and what its save did."""
        turn: Any = self._stores[on_async].conversation(name).turn(said[0], **options)
        if on_async:

            async def wait() -> None:
                async with turn:
                    turn.reply(said[1])

            self._runner.run(wait())
        else:
            with turn:
                turn.reply(said[1])
        return [message["content"] for message in turn.history], turn.saved

    @rule(on_async=either, name=names, minutes=st.integers(1, 50))
    def expire(self, *, on_async: bool, name: str, minutes: int) -> None:
        model = self._models[name]
        found = self._do(on_async, name, "expire", timedelta(minutes=minutes))
        assert found == bool(model.pieces)
        model.life_ms = minutes * 60_000

    @rule(on_async=either, name=names)
    def run_out(self, *, on_async: bool, name: str) -> None:
        self._do(on_async, name, "expire", timedelta(milliseconds=1))
        key = self._key(name)
        wait_until(lambda: not self._server.raw.exists(key))
        self._models[name].clear()

    @rule(on_async=either, name=names, by_trim=either)
    def clear(self, *, on_async: bool, name: str, by_trim: bool) -> None:
        dropped = self._models[name].clear()
        if by_trim:
            assert self._do(on_async, name, "trim", 0) == dropped
        else:
            assert self._do(on_async, name, "clear") == bool(dropped)

    @rule(on_async=either, source=names, onto=names, upto=st.one_of(st.none(), st.integers(1, 60)))
    def fork(self, *, on_async: bool, source: str, onto: str, upto: int | None) -> None:
        if source == onto:
            return
        with self._both_refuse() as refused:
            refused(lambda: self._models[source].fork(self._models[onto], upto))
            other = self._do(on_async, source, "fork", onto, upto=upto)
            assert other.key == self._key(onto)

    # reading

    @rule(on_async=either, name=names, turns=limits, messages=limits)
    def read(self, *, on_async: bool, name: str, turns: int | None, messages: int | None) -> None:
        model = self._models[name]
        shown = model.window(turns, messages)
        history = self._do(on_async, name, "read", Window(turns, messages))
        assert [message["content"] for message in history] == model.contents(shown)
        assert history.revision == model.revision
        assert history.has_older == (len(shown) < len(model.turn_numbers))
        self._compare_turns(model, shown, history.turns)

    @rule(on_async=either, name=names, limit=st.integers(1, 8), before=st.integers(1, 90))
    def page(self, *, on_async: bool, name: str, limit: int, before: int) -> None:
        self._page(on_async, name, limit, before)

    @rule(on_async=either, name=names, limit=st.integers(1, 8))
    def pages(self, *, on_async: bool, name: str, limit: int) -> None:
        seen: list[int] = []
        cursor = None
        while True:
            shown, cursor = self._page(on_async, name, limit, cursor)
            seen = shown + seen
            if cursor is None:
                break
        assert seen == self._models[name].turn_numbers

    def _page(
        self,
        on_async: bool,  # noqa: FBT001
        name: str,
        limit: int,
        before: int | None,
    ) -> tuple[list[int], int | None]:
        model = self._models[name]
        shown, cursor = model.page(limit, before)
        page = self._do(on_async, name, "turns", limit, before=before)
        assert page.cursor == cursor
        assert page.revision == model.revision
        self._compare_turns(model, shown, page)
        return shown, cursor

    @rule(on_async=either, name=names)
    def stat(self, *, on_async: bool, name: str) -> None:
        model = self._models[name]
        said = model.contents()
        stat = self._do(on_async, name, "stat")
        assert (stat.turns, stat.messages) == (len(model.turn_numbers), len(said))
        assert stat.tokens == sum(map(len, said))
        assert stat.revision == model.revision
        assert (stat.ttl is not None) == bool(model.pieces)
        assert (stat.first_time is not None) == bool(model.pieces)

    # what holds after each step

    @invariant()
    def the_lists_are_as_the_model_says(self) -> None:
        for name, model in self._models.items():
            raw = look(self._server.raw, self._key(name))
            assert raw.contents == model.contents(), name
            pieces = [(piece.no, piece.turn, piece.id) for piece in raw.pieces]
            assert pieces == [(piece.no, piece.turn, piece.id) for piece in model.pieces], name
            if raw.head:
                assert list(raw.head.ids) == [piece.id for piece in model.known], name
                assert 0 < raw.ttl_ms <= model.life_ms, name

    # helpers

    def _key(self, name: str) -> str:
        return self._stores[0].conversation(name).key

    def _some_revision(self, name: str) -> st.SearchStrategy[str]:
        """The right one half of the time, otherwise one that was right somewhere once."""
        return st.one_of(
            st.just(self._models[name].revision), st.sampled_from(self._revisions[-20:])
        )

    def _compare_turns(self, model: Model, numbers: list[int], turns: list[Any]) -> None:
        assert [turn.number for turn in turns] == numbers
        for turn in turns:
            said = model.contents([turn.number])
            newest = model.pieces_of(turn.number)[-1]
            assert [message["content"] for message in turn.messages] == said
            assert turn.tokens == sum(map(len, said))
            assert (turn.id, turn.revision) == (newest.id, newest.revision)

    @contextmanager
    def _both_refuse(self) -> Iterator[_Refusal]:
        """Demand a ConflictError from the store where the model refuses, and else none."""
        refusal = _Refusal()
        try:
            yield refusal
        except (ConflictError, ValueError) as error:
            expected = ConflictError if refusal.refused is Conflict else ValueError
            assert refusal.refused, "the store refuses what the model allows"
            assert isinstance(error, expected)  # noqa: PT017 (the model says which)
        else:
            assert not refusal.refused, "the store allows what the model refuses"


class _Refusal:
    def __init__(self) -> None:
        self.refused: type[Exception] | None = None
        self.answer: Any = None

    def __call__(self, act: Any) -> None:
        try:
            self.answer = act()
        except (Conflict, IdTaken, NotHeld) as refusal:
            self.refused = type(refusal)


def make_machine(
    server: Server, prefix: str, sync: Client, asynchronous: AsyncClient, runner: asyncio.Runner
) -> type[RuleBasedStateMachine]:
    """Bind the machine to a server; hypothesis makes instances without arguments."""

    class Bound(Machine):
        def __init__(self) -> None:
            super().__init__(server, prefix, sync, asynchronous, runner)

    return Bound


__all__ = ["Machine", "make_machine"]
