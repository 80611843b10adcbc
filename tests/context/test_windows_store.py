"""Windows of real conversations on real servers: what the slow model says, after all changes."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.context.talks import SIZES, Talk, turn, windows
from turnstore import Window

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncConversation

pytestmark = pytest.mark.one_setup


async def grow(chat: AsyncConversation, held: Talk, random: Random, count: int) -> None:
    """Append turns, most of them whole, those with tools in pieces."""
    for number in range(len(held.turns) + 1, len(held.turns) + count + 1):
        pieces = turn(random, number)
        for place, piece in enumerate(pieces):
            await chat.append(piece, continues=place > 0)
        held.turns.append(pieces)


@pytest.mark.parametrize("seed", range(3))
async def test_a_window_is_what_the_slow_model_says(new_store: NewStore, seed: int) -> None:
    random = Random(seed)
    chat = new_store(count_tokens=SIZES, max_messages=None).conversation("c")
    held = Talk([])
    for _ in range(4):
        await grow(chat, held, random, random.randint(3, 10))
        if random.random() < 0.5:
            undone = len(await chat.rewind(random.randint(1, 2)))
            del held.turns[-undone:]
        if random.random() < 0.5:
            held.trimmed += await chat.trim(turns=random.randint(2, 12))
        for window in windows(random, 16):
            history = await chat.read(window)
            expected = held.window(window)
            assert [turn.number for turn in history.turns] == expected, window
            assert list(history) == held.messages(expected)


async def test_a_step_is_alike_in_another_process(
    new_store: NewStore, server: Server, prefix: str
) -> None:
    """Which has read nothing before."""
    if not server.addresses or len(server.addresses) > 1:
        pytest.skip("the other process is given one address")
    chat = new_store(count_tokens=SIZES).conversation("c")
    random = Random(5)
    await grow(chat, Talk([]), random, 30)
    drawn = [window for window in windows(random, 32) if window.step]
    told = [[w.turns, w.messages, w.tokens, w.step] for w in drawn]
    program = f"""if True:
        import json, redis
        from tests.context.talks import SIZES
        from turnstore import Store, Window
        host, port = {server.addresses[0]!r}
        with redis.Redis(host, port) as client:
            store = Store(client, name="test", prefix={prefix!r}, count_tokens=SIZES)
            chat = store.conversation("c")
            reads = [chat.read(Window(*window)) for window in {told!r}]
            print(json.dumps([[turn.number for turn in read.turns] for read in reads]))
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await process.communicate()
    assert err == b""
    here = [[turn.number for turn in (await chat.read(window)).turns] for window in drawn]
    assert json.loads(out) == here


@pytest.mark.parametrize("step", [None, 0.25, 0.5])
async def test_all_limits_at_once_are_one_command(
    new_store: NewStore, proxy: Proxy, step: float | None
) -> None:
    chat = new_store(at=proxy, count_tokens=SIZES).conversation("c")
    window = Window(turns=12, messages=30, tokens=1500, step=step)
    random = Random(11)
    commands = []
    for number in range(60):
        await chat.append([f"{number} {'q ' * random.randint(5, 60)}", "a " * 150])
        proxy.clear()
        await chat.read(window)
        commands.append(proxy.count("LRANGE"))
        assert proxy.seen == ["LRANGE"] * commands[-1]
    assert max(commands) <= 2
    assert commands.count(2) <= 1


async def test_a_recount_is_exact_and_warns_once_a_window(
    new_store: NewStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The turns were stored by a store that counted nothing, or counted otherwise."""
    old = {"": new_store(), "other": new_store(count_tokens=lambda _: 1)}
    for name, store in old.items():
        random, held = Random(17), Talk([])
        chat = store.conversation(f"c{name}")
        await grow(chat, held, random, 25)
        window = Window(tokens=600)
        caplog.clear()
        history = await new_store(count_tokens=SIZES).conversation(f"c{name}").read(window)
        assert [turn.number for turn in history.turns] == held.window(window)
        recounts = [r for r in caplog.records if "counted on reading" in r.getMessage()]
        assert [record.levelno for record in recounts] == [logging.WARNING]
        assert "count_tokens='sizes'" in recounts[0].getMessage()


async def test_a_giant_newest_turn_is_kept_whole_with_a_warning(
    new_store: NewStore, caplog: pytest.LogCaptureFixture
) -> None:
    chat = new_store(count_tokens=SIZES).conversation("c")
    await chat.append("first")
    await chat.append("word " * 1000)
    assert len(await chat.read(Window(tokens=100))) == 1
    (record,) = caplog.records
    assert "it is kept whole" in record.getMessage()


async def test_a_step_keeps_the_start_through_trims_and_rewinds(new_store: NewStore) -> None:
    chat = new_store(count_tokens=SIZES).conversation("c")
    window = Window(turns=8, step=0.5)

    async def start() -> int:
        return (await chat.read(window)).turns[0].number

    starts = []
    for number in range(20):
        await chat.append(f"{number}")
        starts.append(await start())
    assert starts == [1] * 8 + [5] * 4 + [9] * 4 + [13] * 4
    await chat.trim(turns=10)
    assert await start() == 13
    await chat.rewind(4)
    assert await start() == 11, "the start of 16 turns is 9, and 11 is the oldest held"
    await chat.append("again")
    assert await start() == 13
