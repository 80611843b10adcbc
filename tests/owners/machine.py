"""Random operations on the conversations of owners, and a plain model that has to agree."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.invariants.raw import look
from tests.owners.helping import Owner
from tests.waiting import wait_until
from turnstore import AsyncStore, ConflictError, ErasedError, Store

if TYPE_CHECKING:
    from tests.servers.running import AsyncClient, Client, Server

OWNERS = ("ada", "bob", None)
IDS = ("x", "y", "z")

owners = st.sampled_from(OWNERS)
somebody = st.sampled_from(OWNERS[:2])
ids = st.sampled_from(IDS)
either = st.booleans()
policies = st.sampled_from(["append", "reject"])


@dataclass
class Chat:
    """One conversation as the documentation has it."""

    said: list[str] = field(default_factory=list)
    title: str | None = None
    """Outlasts an undo of all that was said, and nothing else that ends it."""
    undone: bool = False
    """Whether all that was said was undone, so that the title waits for what is said next."""
    last: int = 0
    """The place of its last write among all."""
    cleared: int = -1
    """When it was cleared."""

    def end(self) -> None:
        """Be gone."""
        self.said, self.title, self.undone = [], None, False


@dataclass
class Pending:
    """A turn that has begun."""

    turn: Any
    on_async: bool
    owner: str | None
    id: str
    text: str
    began: int
    seen: list[str]
    policy: str
    kept: list[str] | None
    """What stays before it; None where it replaces nothing."""


class Machine(RuleBasedStateMachine):
    """Two clients of one server, and a model of each owner."""

    def __init__(
        self,
        server: Server,
        prefix: str,
        sync: Client,
        asynchronous: AsyncClient,
        runner: asyncio.Runner,
    ) -> None:
        super().__init__()
        self._server, self._runner = server, runner
        self._prefix = f"{prefix}-{uuid4().hex}"
        settings: dict[str, Any] = {"name": "test", "prefix": self._prefix}
        self._stores = (Store(sync, **settings), AsyncStore(asynchronous, **settings))
        self._chats = {(owner, id_): Chat() for owner in OWNERS for id_ in IDS}
        self._erased = dict.fromkeys(OWNERS, -1)
        self._pending: list[Pending] = []
        self._time = 0

    def _do(self, on_async: bool, doing: Any) -> Any:  # noqa: FBT001
        answer = doing(self._stores[on_async])
        if not on_async:
            return answer

        async def wait() -> Any:
            return await answer

        return self._runner.run(wait())

    def _now(self) -> int:
        self._time += 1
        return self._time

    def _write(self, owner: str | None, id_: str, texts: list[str]) -> None:
        chat = self._chats[owner, id_]
        chat.said += texts
        chat.undone = False
        chat.last = self._now()

    # what writes

    @rule(on_async=either, owner=owners, id_=ids)
    def append(self, *, on_async: bool, owner: str | None, id_: str) -> None:
        text = f"said {self._now()}"
        self._do(on_async, lambda store: store.conversation(id_, owner=owner).append(text))
        self._write(owner, id_, [text])

    @rule(on_async=either, owner=owners, id_=ids, policy=policies, data=st.data())
    def begin(
        self, *, on_async: bool, owner: str | None, id_: str, policy: str, data: st.DataObject
    ) -> None:
        text = f"asked {self._now()}"
        held = self._stores[0].conversation(id_, owner=owner).turns()
        old = data.draw(st.sampled_from([None, *range(len(held))]))
        seen = list(self._chats[owner, id_].said)
        kept = None if old is None else seen[: sum(len(one.messages) for one in held[:old])]
        turn = (
            self._stores[on_async]
            .conversation(id_, owner=owner)
            .turn(
                text,
                on_conflict=policy,  # type: ignore[arg-type]  # one of them
                replaces=None if old is None else held[old],
            )
        )
        self._do(on_async, lambda _: getattr(turn, "__aenter__" if on_async else "__enter__")())
        turn.reply(f"re {text}")
        before = seen if kept is None else kept
        assert [message["content"] for message in turn.history] == before
        self._pending.append(
            Pending(turn, on_async, owner, id_, text, self._now(), seen, policy, kept)
        )

    @precondition(lambda self: self._pending)
    @rule(data=st.data(), again=either)
    def save(self, *, data: st.DataObject, again: bool) -> None:
        one = data.draw(st.sampled_from(self._pending))
        chat = self._chats[one.owner, one.id]
        erased = one.began < max(self._erased[one.owner], chat.cleared)
        if one.owner is None:
            erased = False
        strict = one.policy == "reject" or one.kept is not None
        conflict = strict and chat.said != one.seen
        done = one.turn.saved is not None
        for _ in range(1 + again):
            try:
                self._do(one.on_async, lambda _: one.turn.save())
            except ErasedError as error:
                assert erased, "refused although nothing was erased"
                assert error.reply == f"re {one.text}"  # noqa: PT017 (the model says which)
            except ConflictError:
                assert conflict
                assert not erased
            else:
                assert not (erased or conflict) or done
                if not done:
                    if one.kept is not None:
                        chat.said = list(one.kept)
                    self._write(one.owner, one.id, [one.text, f"re {one.text}"])
                done = True
                conflict = False

    @rule(on_async=either, owner=somebody, id_=ids, title=st.sampled_from(["T", "U", None]))
    def set_title(self, *, on_async: bool, owner: str, id_: str, title: str | None) -> None:
        chat = self._chats[owner, id_]
        done = self._do(
            on_async, lambda store: store.conversation(id_, owner=owner).set_title(title)
        )
        assert done == (bool(chat.said) or chat.undone)
        if done:
            chat.title = title

    @rule(on_async=either, source=owners, id_=ids, to=ids, adopt=either)
    def fork(self, *, on_async: bool, source: str | None, id_: str, to: str, adopt: bool) -> None:
        target = "ada" if adopt and source is None else source
        if (target, to) == (source, id_):
            return
        said, there = self._chats[source, id_].said, self._chats[target, to]
        fits = not there.said
        try:
            self._do(
                on_async,
                lambda store: store.conversation(id_, owner=source).fork(to, owner=target),
            )
        except ConflictError:
            assert not fits
        else:
            assert fits or there.said == said
            if said and fits:
                self._write(target, to, said)
                there.title = None

    # what ends something

    @rule(on_async=either, owner=somebody, verify=either)
    def erase(self, *, on_async: bool, owner: str, verify: bool) -> None:
        receipt = self._do(on_async, lambda store: store.erase(owner, verify=verify))
        theirs = [chat for (whose, _), chat in self._chats.items() if whose == owner]
        gone = [chat for chat in theirs if chat.said]
        assert receipt.conversations == len(gone)
        assert receipt.messages == sum(len(chat.said) for chat in gone)
        assert receipt.verified == verify
        for chat in theirs:
            chat.end()
        self._erased[owner] = self._now()
        assert Owner(self._server, self._prefix, owner).stored == {"generation"}

    @rule(on_async=either, owner=owners, id_=ids)
    def clear(self, *, on_async: bool, owner: str | None, id_: str) -> None:
        chat = self._chats[owner, id_]
        done = self._do(on_async, lambda store: store.conversation(id_, owner=owner).clear())
        assert done == bool(chat.said)
        chat.end()
        chat.cleared = self._now()

    @rule(on_async=either, owner=somebody, id_=ids, verify=either)
    def erase_conversation(self, *, on_async: bool, owner: str, id_: str, verify: bool) -> None:
        chat = self._chats[owner, id_]
        receipt = self._do(
            on_async, lambda store: store.conversation(id_, owner=owner).erase(verify=verify)
        )
        assert (receipt.conversations, receipt.messages) == (int(bool(chat.said)), len(chat.said))
        assert receipt.verified == verify
        chat.end()
        chat.cleared = self._now()
        digest = self._stores[0].conversation(id_, owner=owner).key.split(":")[-2]
        stored = Owner(self._server, self._prefix, owner).stored
        assert not [key for key in stored if key.startswith(digest)]

    @rule(on_async=either, owner=owners, id_=ids)
    def rewind_all(self, *, on_async: bool, owner: str | None, id_: str) -> None:
        self._do(on_async, lambda store: store.conversation(id_, owner=owner).rewind(99))
        chat = self._chats[owner, id_]
        chat.said, chat.undone = [], chat.undone or bool(chat.said)

    @rule(owner=owners, id_=ids)
    def run_out(self, *, owner: str | None, id_: str) -> None:
        chat = self._stores[0].conversation(id_, owner=owner)
        chat.expire(timedelta(milliseconds=1))
        wait_until(lambda: not self._server.raw.exists(chat.key))
        if self._chats[owner, id_].said:
            self._chats[owner, id_].end()
        self._list(owner)

    # what is seen

    @rule(on_async=either, owner=somebody, id_=ids)
    def title(self, *, on_async: bool, owner: str, id_: str) -> None:
        chat = self._chats[owner, id_]
        title = self._do(on_async, lambda store: store.conversation(id_, owner=owner).title())
        assert title == (chat.title if chat.said else None)

    @rule(on_async=either, owner=somebody, limit=st.integers(1, 4))
    def pages(self, *, on_async: bool, owner: str, limit: int) -> None:
        seen: list[Any] = []
        before = None
        while True:
            page = self._do(
                on_async,
                lambda store, at=before: store.conversations(owner, limit, before=at),
            )
            seen += page
            before = page.cursor
            if before is None:
                break
        assert [(one.id, one.title, one.messages) for one in seen] == self._expected(owner)

    def _list(self, owner: str | None) -> None:
        """Let the lists forget what has ended, so that they can be compared."""
        if owner is not None:
            self._stores[0].conversations(owner)

    def _expected(self, owner: str) -> list[tuple[str, str | None, int]]:
        held = [
            (chat.last, id_, chat)
            for (whose, id_), chat in self._chats.items()
            if whose == owner and chat.said
        ]
        return [(id_, chat.title, len(chat.said)) for _, id_, chat in sorted(held, reverse=True)]

    @invariant()
    def what_is_stored_is_what_the_model_says(self) -> None:
        for (owner, id_), chat in self._chats.items():
            key = self._stores[0].conversation(id_, owner=owner).key
            assert look(self._server.raw, key).contents == chat.said, (owner, id_)
        for owner in OWNERS[:2]:
            assert Owner(self._server, self._prefix, owner or "").agrees, owner

    def teardown(self) -> None:
        self._server.delete(self._server.lives(self._prefix))


def make_machine(
    server: Server, prefix: str, sync: Client, asynchronous: AsyncClient, runner: asyncio.Runner
) -> type[RuleBasedStateMachine]:
    """Bind the machine to a server; hypothesis makes instances without arguments."""

    class Bound(Machine):
        def __init__(self) -> None:
            super().__init__(server, prefix, sync, asynchronous, runner)

    return Bound


__all__ = ["Machine", "make_machine"]
