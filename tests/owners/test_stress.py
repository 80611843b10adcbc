"""Many writers and several erasers at once: nothing comes back, and nothing else is lost."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.raw import look
from tests.owners.helping import NOTE, Owner
from tests.waiting import wait_until_async
from turnstore import ConflictError, ErasedError, Lease

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.running import Server
    from turnstore import AsyncConversation, AsyncStore

IDS = ("a", "b", "c")


@dataclass
class Record:
    """What happened, in an order that all who take part agree on."""

    moments: count[int] = field(default_factory=count)
    begun: dict[str, int] = field(default_factory=dict)
    """When what stored a text had begun: not later than this."""
    erased: list[tuple[int, int]] = field(default_factory=list)
    """When they were called, and when they had returned."""
    acknowledged: dict[str, int] = field(default_factory=dict)
    """When what stored a text was called, for what was acknowledged."""
    refused: list[tuple[int, int]] = field(default_factory=list)
    done: int = 0

    def check_seen(self, texts: list[str], since: int) -> None:
        """Fail where something is read that was erased before the read began."""
        calls = [called for called, returned in self.erased if returned < since]
        last = max(calls, default=-1)
        back = [text for text in texts if self.begun.get(text, since) < last]
        assert not back, f"came back: {back}"


async def _turn(chat: AsyncConversation, text: str, record: Record, policy: Any) -> None:
    started = next(record.moments)
    lease = Lease() if policy == "serialize" else None
    try:
        async with chat.turn(text, on_conflict=policy, lease=lease, turn_id=text) as turn:
            record.begun[text] = next(record.moments)
            record.check_seen([message["content"] for message in turn.history], started)
            turn.reply(text)
    except ErasedError:
        record.refused.append((started, next(record.moments)))
    except ConflictError:
        pass
    else:
        record.acknowledged[text] = started


async def _append(chat: AsyncConversation, text: str, record: Record) -> None:
    started = next(record.moments)
    try:
        await chat.append(text, turn_id=text)
    except ErasedError:
        record.refused.append((started, next(record.moments)))
    else:
        # It may not have begun before it was about to end: a thread has no hurry.
        record.begun[text] = next(record.moments)
        record.acknowledged[text] = started


async def _fork(chat: AsyncConversation, text: str, record: Record) -> None:
    started = next(record.moments)
    try:
        await chat.fork(text)
    except ErasedError:
        record.refused.append((started, next(record.moments)))


async def _write(store: AsyncStore, writer: int, many: int, record: Record) -> None:
    choice = random.Random(writer)
    for number in range(many):
        chat = store.conversation(choice.choice(IDS), owner="ada")
        text = f"{writer}-{number}"
        act = choice.randrange(8)
        if act < 5:
            await _turn(chat, text, record, ("append", "reject", "serialize")[act % 3])
        elif act < 7:
            await _append(chat, text, record)
        else:
            await _fork(chat, text, record)
        record.done += 1


async def _erase(store: AsyncStore, record: Record, wanted: list[int], *, verify: bool) -> None:
    for many in wanted:
        await wait_until_async(_reached(record, many), seconds=60)
        called = next(record.moments)
        receipt = await store.erase("ada", verify=verify)
        assert receipt.verified == verify
        record.erased.append((called, next(record.moments)))


def _reached(record: Record, many: int) -> Callable[[], bool]:
    return lambda: record.done >= many


async def _run(store: AsyncStore, *, writers: int, many: int, erasures: int) -> Record:
    record = Record()
    steps = [writers * many * n // (erasures + 1) for n in range(1, erasures + 1)]
    await asyncio.gather(
        *(_write(store, writer, many, record) for writer in range(writers)),
        _erase(store, record, steps, verify=False),
        _erase(store, record, steps[::2], verify=True),
    )
    return record


def _check(record: Record, server: Server, prefix: str, store: AsyncStore, ids: set[str]) -> None:
    stored: set[str] = set()
    for name in ids:
        texts = look(server.raw, store.conversation(name, owner="ada").key).contents
        record.check_seen(texts, next(record.moments))
        stored.update(texts)
    last_returned = max(returned for _, returned in record.erased)
    lost = {text for text, started in record.acknowledged.items() if started > last_returned}
    assert lost <= stored, "began after the last erasure, was acknowledged, and is not there"
    for started, ended in record.refused:
        assert any(called < ended and started < returned for called, returned in record.erased)
    assert Owner(server, prefix).agrees


@pytest.mark.one_setup
@pytest.mark.servers("redis-7", "redis-8", "valkey", "cluster")  # fakeredis is not built for it
@pytest.mark.timeout(240)
async def test_nothing_comes_back(new_store: NewStore, server: Server, prefix: str) -> None:
    store = new_store()
    record = await _run(store, writers=12, many=12, erasures=7)
    assert len(record.erased) == 11
    ids = {info.id for info in await store.conversations("ada", 1000)}
    _check(record, server, prefix, store, ids)
    assert (await store.erase("ada", verify=True)).verified
    assert Owner(server, prefix).stored == NOTE


@pytest.mark.slow
@pytest.mark.one_setup
@pytest.mark.timeout(1800)
async def test_nothing_comes_back_at_length(
    new_store: NewStore, server: Server, prefix: str
) -> None:
    store = new_store()
    refused = 0
    for _ in range(20):
        record = await _run(store, writers=24, many=40, erasures=60)
        ids = {info.id for info in await store.conversations("ada", 5000)}
        _check(record, server, prefix, store, ids)
        refused += len(record.refused)
    assert refused, "erasures met writers"
