"""Random operations on facts and on a plain model, which have to agree after each step."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.facts.meaning.kit import DIMENSIONS, embed
from tests.facts.store.model import Asked, search
from tests.facts.store.raw import look
from turnstore import AsyncStore, Store
from turnstore.facts import AsyncFacts, Fact, Facts, NewFact, Ranking

if TYPE_CHECKING:
    from tests.servers.running import AsyncClient, Client, Server

OWNERS = ("ada", "bob")
TTL = timedelta(hours=1)
PAST = datetime(2020, 1, 1, tzinfo=UTC)

owners = st.sampled_from(OWNERS)
# Few texts, so that they come again, in other letters as well.
texts = st.sampled_from(
    ["Ada swims", "ada  swims", "Ada reads books", "Bob swims and reads", "the", "tea tea jam", "é"]
)
kinds = st.sampled_from(["fact", "wish"])
conversations = st.sampled_from(["", "c1", "c2"])
turn_ids = st.sampled_from(["t1", "t2", "t3"])
either = st.booleans()
ends = st.sampled_from([None, PAST + timedelta(days=9), PAST + timedelta(days=99)])


@dataclass
class Known:
    """What the model knows of a fact."""

    text: str
    kind: str
    conversation: str
    sources: tuple[str, ...]
    valid_to: datetime | None
    valid_to_before: datetime | None
    expired: bool = False
    pinned: bool = False


class Model:
    """The facts of one owner, and which of them stands for what it says."""

    def __init__(self) -> None:
        self.facts: dict[str, Known] = {}
        self.norms: dict[object, str] = {}

    def norm(self, known: Known, turn: tuple[str, str] | None = None) -> object:
        end = known.valid_to_before if known.expired else known.valid_to
        return turn or (known.kind, " ".join(known.text.casefold().split()), end)

    def remove(self, id_: str) -> None:
        del self.facts[id_]
        self.norms = {norm: one for norm, one in self.norms.items() if one != id_}

    def free(self, id_: str) -> None:
        self.norms = {norm: one for norm, one in self.norms.items() if one != id_}


class Machine(RuleBasedStateMachine):
    """Two clients of one server, and a model of each owner."""

    def __init__(  # noqa: PLR0913, PLR0917 - what it runs on
        self,
        server: Server,
        prefix: str,
        engine: str,
        sync: Client,
        asynchronous: AsyncClient,
        runner: asyncio.Runner,
    ) -> None:
        super().__init__()
        self._server = server
        self._runner = runner
        names: dict[str, Any] = {"name": f"machine-{uuid4().hex}", "prefix": prefix}
        nothing: dict[str, Any] = dict.fromkeys(
            ("neighbours", "sitting", "answers", "questions", "dates"), 0.0
        )
        options: dict[str, Any] = {
            "embed": embed,
            "dimensions": DIMENSIONS,
            "embedder": "words:1",
            "engine": engine,
            "ttl": TTL,
            "ranking": Ranking(alpha=0.65, near_duplicate=None, **nothing),
        }
        self._both = (
            Facts(Store(sync, **names), **options),
            AsyncFacts(AsyncStore(asynchronous, **names), **options),
        )
        self._models = {owner: Model() for owner in OWNERS}

    def _do(self, on_async: bool, method: str, *args: Any, **kwargs: Any) -> Any:  # noqa: FBT001
        """Call a method on one of the two clients."""
        answer = getattr(self._both[on_async], method)(*args, **kwargs)
        if not on_async:
            return answer

        async def wait() -> Any:
            return await answer

        return self._runner.run(wait())

    def _some_id(self, owner: str, data: st.DataObject) -> str:
        ids = sorted({*self._models["ada"].facts, *self._models["bob"].facts}) or ["0" * 12]
        mine = sorted(self._models[owner].facts) or ids
        return data.draw(st.one_of(st.sampled_from(mine), st.sampled_from(ids)))

    # writing

    @rule(
        on_async=either, owner=owners, text=texts, kind=kinds, conversation=conversations,
        turn_id=turn_ids, end=ends,
    )  # fmt: skip
    def add(  # noqa: PLR0913 - each is drawn
        self,
        *,
        on_async: bool,
        owner: str,
        text: str,
        kind: str,
        conversation: str,
        turn_id: str,
        end: datetime | None,
    ) -> None:
        new = NewFact(
            text=text,
            kind=kind,
            conversation=conversation,
            sources=(turn_id,),
            valid_from=PAST,
            valid_to=end,
        )
        (added,) = self._do(on_async, "add_many", owner, [new])
        self._note(owner, Known(text, kind, conversation, (turn_id,), end, end), added)

    @rule(on_async=either, owner=owners, news=st.lists(st.tuples(texts, turn_ids), max_size=6))
    def add_many(self, *, on_async: bool, owner: str, news: list[tuple[str, str]]) -> None:
        new = [NewFact(text=text, sources=(one,), valid_from=PAST) for text, one in news]
        for (text, turn_id), added in zip(
            news, self._do(on_async, "add_many", owner, new), strict=True
        ):
            self._note(owner, Known(text, "fact", "", (turn_id,), None, None), added)

    @rule(on_async=either, owner=owners, text=texts, conversation=conversations, turn_id=turn_ids)
    def add_exchange(
        self, *, on_async: bool, owner: str, text: str, conversation: str, turn_id: str
    ) -> None:
        conversation = conversation or "c3"
        added = self._do(
            on_async, "add_exchange", owner, conversation, turn_id, text, observed=PAST
        )
        known = Known(text, "exchange", conversation, (turn_id,), None, None)
        self._note(owner, known, added, turn=(conversation, turn_id))

    def _note(
        self, owner: str, known: Known, added: Any, turn: tuple[str, str] | None = None
    ) -> None:
        model = self._models[owner]
        norm = model.norm(known, turn)
        there = model.norms.get(norm)
        assert added.duplicate == (there is not None)
        if there is None:
            assert added.id not in model.facts
            model.facts[added.id] = known
            model.norms[norm] = added.id
            return
        assert added.id == there
        old = model.facts[there].sources
        model.facts[there].sources = tuple(dict.fromkeys((*old, *known.sources)))

    @rule(
        on_async=either, owner=owners, text=st.one_of(st.none(), texts), pinned=either,
        end=st.one_of(st.just(...), ends), data=st.data(),
    )  # fmt: skip
    def update(  # noqa: PLR0913 - each is drawn
        self,
        *,
        on_async: bool,
        owner: str,
        text: str | None,
        pinned: bool,
        end: Any,
        data: st.DataObject,
    ) -> None:
        id_ = self._some_id(owner, data)
        model = self._models[owner]
        known = model.facts.get(id_)
        changed = None
        is_taken = False
        if known is not None:
            changed = Known(**vars(known))
            changed.text = text or known.text
            changed.pinned = pinned
            if end is not ...:
                changed.valid_to = end
                if not changed.expired:
                    changed.valid_to_before = end
            if not changed.expired and changed.kind != "exchange":
                is_taken = model.norms.get(model.norm(changed), id_) != id_
        try:
            fact = self._do(on_async, "update", owner, id_, text=text, pinned=pinned, valid_to=end)
        except ValueError:
            assert is_taken
            return
        assert not is_taken
        assert (fact is None) == (known is None)
        if changed is not None:
            model.facts[id_] = changed
            if not changed.expired and changed.kind != "exchange":
                model.free(id_)
                model.norms[model.norm(changed)] = id_

    @rule(on_async=either, owner=owners, end=ends, data=st.data())
    def end(self, *, on_async: bool, owner: str, end: datetime | None, data: st.DataObject) -> None:
        id_ = self._some_id(owner, data)
        model = self._models[owner]
        known = model.facts.get(id_)
        end = end or PAST + timedelta(days=5)
        assert self._do(on_async, "end", owner, id_, valid_to=end) == (known is not None)
        if known is not None:
            if not known.expired:
                known.valid_to_before = known.valid_to
            known.valid_to, known.expired = end, True
            model.free(id_)

    @rule(on_async=either, owner=owners, verify=st.booleans(), data=st.data())
    def forget(self, *, on_async: bool, owner: str, verify: bool, data: st.DataObject) -> None:
        id_ = self._some_id(owner, data)
        model = self._models[owner]
        receipt = self._do(on_async, "forget", owner, id_, verify=verify)
        assert receipt.verified == verify
        assert bool(receipt) == (sum(receipt.parts.values()) == 1) == (id_ in model.facts)
        if id_ in model.facts:
            model.remove(id_)

    @rule(on_async=either, owner=owners, conversation=st.sampled_from(["c1", "c2", "c3"]))
    def forget_conversation(self, *, on_async: bool, owner: str, conversation: str) -> None:
        model = self._models[owner]
        gone = [id_ for id_, one in model.facts.items() if one.conversation == conversation]
        assert self._do(on_async, "forget_conversation", owner, conversation) == len(gone)
        for id_ in gone:
            model.remove(id_)

    @rule(
        on_async=either,
        owner=owners,
        conversation=st.sampled_from(["c1", "c2", "c3"]),
        gone=st.sets(turn_ids),
    )
    def forget_turns(
        self, *, on_async: bool, owner: str, conversation: str, gone: set[str]
    ) -> None:
        model = self._models[owner]
        concerned = {
            id_: tuple(source for source in one.sources if source not in gone)
            for id_, one in model.facts.items()
            if one.conversation == conversation and one.sources and not one.pinned
        }
        removed = self._do(on_async, "forget_turns", owner, conversation, sorted(gone))
        assert removed == sum(not sources for sources in concerned.values())
        for id_, sources in concerned.items():
            if sources:
                model.facts[id_].sources = sources
            else:
                model.remove(id_)

    @precondition(lambda self: any(model.facts for model in self._models.values()))
    @rule(on_async=either, owner=owners)
    def erase(self, *, on_async: bool, owner: str) -> None:
        known = Counter(
            "exchanges" if one.kind == "exchange" else "facts"
            for one in self._models[owner].facts.values()
        )
        assert self._do(on_async, "erase", owner).parts == known
        self._models[owner] = Model()

    @rule(on_async=either, owner=owners, most=st.integers(1, 8))
    def retain(self, *, on_async: bool, owner: str, most: int) -> None:
        model = self._models[owner]
        pinned = sum(one.pinned for one in model.facts.values())
        wanted = max(len(model.facts) - pinned - max(most - pinned, 0), 0)
        done = self._do(on_async, "retain", owner, most=most)
        assert done.removed == ({"most": wanted} if wanted else {})
        left = {fact.id for fact in self._stored(owner)}
        for id_ in set(model.facts) - left:
            assert not model.facts[id_].pinned
            model.remove(id_)
        assert set(model.facts) == left

    # reading

    def _stored(self, owner: str) -> list[Fact]:
        return list(self._both[0].list(owner, 1000, include_closed=True))

    @rule(on_async=either, owner=owners, text=texts, top_k=st.integers(1, 30), is_past=either)
    def search(self, *, on_async: bool, owner: str, text: str, top_k: int, is_past: bool) -> None:
        as_of = PAST + timedelta(days=7) if is_past else datetime.now(UTC) + timedelta(minutes=1)
        hits = self._do(on_async, "search", owner, text, top_k=top_k, min_score=None, as_of=as_of)
        wanted = search(self._stored(owner), Asked(text, top_k, as_of), embed, 200)
        # Texts of the same words have the same vector, but for the last digit.
        assert [round(hit.score, 6) for hit in hits] == [round(score, 6) for _, score in wanted]
        if len({round(score, 6) for _, score in wanted}) == len(wanted):
            assert [hit.fact.id for hit in hits] == [id_ for id_, _ in wanted]

    @rule(on_async=either, owner=owners, limit=st.integers(1, 5))
    def pages(self, *, on_async: bool, owner: str, limit: int) -> None:
        seen: list[str] = []
        cursor = None
        while True:
            page = self._do(on_async, "list", owner, limit, before=cursor, include_closed=True)
            seen += [fact.id for fact in page]
            cursor = page.cursor
            if cursor is None:
                break
        assert seen == sorted(self._models[owner].facts, reverse=True)

    # what holds after each step

    @invariant()
    def what_lies_there_is_what_the_model_says(self) -> None:
        for owner, model in self._models.items():
            raw = look(self._server, self._both[0], owner)  # type: ignore[arg-type]  # either will do
            assert raw.records.keys() == model.facts.keys()
            for id_, record in raw.records.items():
                known, fact = model.facts[id_], record.fact
                assert (fact.text, fact.kind, fact.pinned) == (
                    known.text,
                    known.kind,
                    known.pinned,
                )
                assert (fact.conversation, fact.sources) == (known.conversation, known.sources)
                assert (fact.valid_to, fact.expired is not None) == (
                    known.valid_to,
                    known.expired,
                )
                if known.expired:
                    assert fact.valid_to_before == known.valid_to_before
            immortal = [key for key, ttl in raw.keys.items() if ttl < 0]
            assert immortal == []
            assert all(
                ttl <= 2 * 3_600_000 or b"}:generation" in key or b":forgotten" in key
                for key, ttl in raw.keys.items()
            )


def make_machine(*given: Any) -> type[RuleBasedStateMachine]:
    """Make a class of machines, as hypothesis wants it, that run on what is given."""

    class Running(Machine):
        def __init__(self) -> None:
            super().__init__(*given)

    return Running
