"""What was said is remembered turn by turn: once, by whomever, and nothing silently not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import embed
from tests.facts.recall.kit import facts_in
from tests.servers.facade import inner
from tests.turn.test_tools import asks, result
from tests.waiting import wait_until_async
from turnstore import Appended, Store
from turnstore.context import Context, SavedTurn
from turnstore.facts import AsyncExchanges, Exchanges, Facts, _exchanging

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.facts.recall.kit import Memory
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis", "valkey")]

SAVED = Appended("1-t1", duplicate=False, turns=1, messages=2, tokens=0, dropped=0)


def turn(number: int = 1, *, owner: str = "ada", **more: Any) -> SavedTurn:
    messages = [
        {"role": "user", "content": f"I have {number} cats."},
        {"role": "assistant", "content": "How nice."},
    ]
    values = {"messages": messages, "format": "openai.chat", **more}
    return SavedTurn("c", owner, f"t{number}", appended=SAVED, **values)


def text(number: int = 1) -> str:
    return f"User: I have {number} cats.\nAssistant: How nice."


async def told(exchanges: Any, *turns: SavedTurn) -> None:
    for one in turns:
        await exchanges.__call__(one)


class Slow:
    """An embedder that waits until it may go on, and may fail some times first."""

    def __init__(self, *faults: Exception) -> None:
        self.go = threading.Event()
        self.faults = list(faults)
        self.asked = 0

    def __call__(self, texts: list[str]) -> Any:
        self.asked += 1
        assert self.go.wait(60)
        if self.faults:
            raise self.faults.pop(0)
        return embed(texts)


@pytest.fixture
def slow() -> Any:
    """Give an embedder that waits, and let it go at the end of the test."""
    embedder = Slow()
    yield embedder
    embedder.go.set()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_exchanging, "_WAITS", (0.01, 0.01, 0.01))


async def test_both_sides_of_a_turn_are_one_text(memory: Memory) -> None:
    exchanges = memory.exchanges()
    context = Context(after=[inner(exchanges)])
    chat = memory.store.conversation("c", owner="ada")
    async with chat.turn("I have a cat.", context=context, turn_id="t1") as one:
        one.reply("What is it called?")
    (fact,) = await memory.facts.list("ada")
    assert fact.text == "User: I have a cat.\nAssistant: What is it called?"
    assert (fact.kind, fact.conversation, fact.sources) == ("exchange", "c", ("t1",))
    assert await memory.facts.list("bob") == []
    assert exchanges.counts == {"stored": 1}


async def test_a_turn_is_stored_once_whoever_does_it(memory: Memory) -> None:
    await told(memory.exchanges(), turn(), turn())
    again = memory.exchanges(background=True)  # another process, after a restart
    await told(again, turn(), turn(2))
    assert await again.close() == 0
    assert await memory.texts() == [text(), text(2)]
    assert again.counts == {"duplicate": 1, "stored": 1}


async def test_tools_and_instructions_are_no_part_of_it(memory: Memory) -> None:
    loop = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "I look."} | asks("1"),
        result("1"),
        {"role": "assistant", "content": "It rains."},
    ]
    exchanges = memory.exchanges()
    await told(exchanges, turn(1, messages=loop[:3]), turn(1, messages=loop[:4]))
    assert await memory.texts() == []
    await told(exchanges, turn(2, messages=loop))
    assert await memory.texts() == ["User: Weather?\nAssistant: It rains."]
    assert exchanges.counts == {"left_out": 2, "stored": 1}


async def test_one_side_alone_is_no_exchange(memory: Memory) -> None:
    exchanges = memory.exchanges()
    for messages in ([], [{"role": "user", "content": "Hello?"}], turn().messages[1:]):
        await told(exchanges, turn(messages=messages))
    assert exchanges.counts == {"left_out": 3}
    assert await memory.texts() == []


async def test_long_texts_are_bounded_and_speakers_have_names(memory: Memory) -> None:
    exchanges = memory.exchanges(most=10, speakers=("Ada", "Bot"))
    messages = [
        {"role": "user", "content": "a" * 50 + "z" * 50},
        {"role": "assistant", "content": "yes"},
    ]
    await told(exchanges, turn(messages=messages))
    assert await memory.texts() == ["Ada: aaaaa […] zzzzz\nBot: yes"]


async def test_half_a_letter_is_replaced(memory: Memory) -> None:
    messages = [
        {"role": "user", "content": "A cat: \ud83d\udc08, half a cat: \ud83d."},
        {"role": "assistant", "content": "Poor \udc08."},
    ]
    await told(memory.exchanges(), turn(messages=messages))
    assert await memory.texts() == [
        "User: A cat: \U0001f408, half a cat: \ufffd.\nAssistant: Poor \ufffd."
    ]


@pytest.mark.parametrize("owner, error", [("", ValueError), (b"ada", TypeError), (5, TypeError)])
def test_what_is_no_owner_is_refused_at_once(memory: Memory, owner: Any, error: Any) -> None:
    with pytest.raises(error):
        memory.exchanges(owner=owner)


async def test_the_longest_exchange_can_be_stored(memory: Memory) -> None:
    messages = [
        {"role": "user", "content": "\U0001f408" * 10_000},
        {"role": "assistant", "content": "\U0001f431" * 10_000},
    ]
    exchanges = memory.exchanges(most=4000)
    await told(exchanges, turn(messages=messages))
    assert exchanges.counts == {"stored": 1}


async def test_a_conversation_without_an_owner_is_a_failure_that_is_counted(
    memory: Memory,
) -> None:
    exchanges = memory.exchanges()
    context = Context(after=[inner(exchanges)])
    await memory.ask("Hello", context, owner=None)
    assert context.counts == {"after": 1}
    with pytest.raises(LookupError, match="no owner"):
        await told(exchanges, turn(owner=""))
    with pytest.raises(LookupError, match="another owner"):
        await told(memory.exchanges(owner="bob"), turn())
    await told(memory.exchanges(owner="bob"), turn(owner=""))
    assert await memory.texts("bob") == [text()]


async def test_a_failure_in_line_leaves_the_turn_alone(memory: Memory, engine: str) -> None:
    def broken(texts: list[str]) -> Any:
        raise OSError(texts)

    memory.facts = facts_in(memory.store, engine=engine, embed=broken)
    context = Context(after=[inner(memory.exchanges())])
    await memory.ask("Hello", context)
    assert context.counts == {"after": 1}
    assert len(await memory.store.conversation("c", owner="ada").read()) == 2


async def test_in_the_background_a_turn_does_not_wait(
    memory: Memory, engine: str, slow: Slow
) -> None:
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True)
    await told(exchanges, *map(turn, range(1, 4)))
    await wait_until_async(lambda: slow.asked)
    assert exchanges.waiting == 3
    assert exchanges.counts == {}
    slow.go.set()
    assert await exchanges.close() == 0
    assert await memory.texts() == [text(number) for number in range(1, 4)]
    assert (exchanges.counts, exchanges.waiting) == ({"stored": 3}, 0)
    await told(exchanges, turn(4))  # in line
    assert exchanges.counts == {"stored": 4}


async def test_a_full_queue_loses_nothing(memory: Memory, engine: str, slow: Slow) -> None:
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True, limit=2)
    await told(exchanges, turn(1), turn(2))
    await wait_until_async(lambda: slow.asked)
    third = asyncio.create_task(told(exchanges, turn(3)))
    await wait_until_async(lambda: slow.asked == 2)
    slow.go.set()
    await third
    assert await exchanges.close() == 0
    assert exchanges.counts == {"stored": 3}
    assert sorted(await memory.texts()) == [text(1), text(2), text(3)]


async def test_what_fails_in_the_background_is_tried_again_and_then_counted(
    memory: Memory, engine: str, slow: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    slow.faults = [OSError("down")] * 3
    slow.go.set()
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True)
    await told(exchanges, turn(1))
    await wait_until_async(lambda: exchanges.counts["stored"])
    assert slow.asked == 4
    slow.faults = [OSError("down")] * 4
    await told(exchanges, turn(2), turn(3))
    await wait_until_async(lambda: not exchanges.waiting)
    assert exchanges.counts == {"stored": 2, "failed": 1}
    assert "the exchange of the turn t2 is not among the facts (OSError: down)" in caplog.text
    slow.faults = [ValueError("of no use")]
    await told(exchanges, turn(4))
    await exchanges.close()
    assert exchanges.counts == {"stored": 2, "failed": 2}


async def test_a_closed_store_is_not_tried_again(
    memory: Memory, engine: str, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_exchanging, "_WAITS", (3600.0,))
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True)
    await told(exchanges, turn(1), turn(2))
    await wait_until_async(lambda: slow.asked)
    await memory.store.close()
    slow.go.set()
    await wait_until_async(lambda: not exchanges.waiting)
    assert exchanges.counts == {"stored": 1, "failed": 1}  # the first one was under way


@pytest.mark.parametrize("how", ["erase", "clear", "forget", "turns"])
async def test_what_waits_does_not_come_back_after_its_removal(
    memory: Memory, engine: str, slow: Slow, how: str
) -> None:
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True)
    context = Context(after=[inner(exchanges)])
    await memory.ask("The first one keeps the embedder busy.", context, owner="bob")
    await wait_until_async(lambda: slow.asked)
    await memory.ask("My secret is 42.", context)
    if how == "erase":
        assert (await memory.store.erase("ada", verify=True)).verified
    elif how == "clear":
        assert await memory.store.conversation("c", owner="ada").clear()
    elif how == "turns":
        undone = await memory.store.conversation("c", owner="ada").rewind()
        assert await memory.facts.forget_turns("ada", "c", undone) == 0
    else:
        await memory.facts.forget_conversation("ada", "c")
    slow.go.set()
    assert await exchanges.close() == 0
    assert exchanges.counts == {"stored": 1, "erased": 1}
    assert await memory.texts() == []
    assert len(await memory.texts("bob")) == 1


async def test_what_waits_of_a_conversation_without_owner_does_not_come_back_either(
    memory: Memory, engine: str, slow: Slow
) -> None:
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True, owner="ada")
    await told(exchanges, turn(1, owner=""), turn(2, owner=""))
    await wait_until_async(lambda: slow.asked)
    await memory.store.erase("ada", verify=True)
    slow.go.set()
    assert await exchanges.close() == 0
    assert exchanges.counts == {"erased": 2}
    assert await memory.texts() == []


async def test_an_erasure_between_the_save_and_what_follows_it_holds(memory: Memory) -> None:
    exchanges = memory.exchanges()
    chat = memory.store.conversation("c", owner="ada")
    saved: list[SavedTurn] = []
    async with chat.turn("My secret is 42.", context=Context(after=[saved.append])) as one:
        one.reply("Noted.")
    await memory.store.erase("ada", verify=True)
    await told(exchanges, *saved)
    assert exchanges.counts == {"erased": 1}
    assert await memory.texts() == []


async def test_an_erasure_is_no_failure_of_what_follows_a_save(
    memory: Memory, server: Server
) -> None:
    exchanges = memory.exchanges()
    prefix = memory.store.conversation("c").key.partition(":1:")[0]

    def erase(_: SavedTurn) -> None:
        Store(server.raw, name="test", prefix=prefix).erase("ada")

    context = Context(after=[erase, inner(exchanges)])
    await memory.ask("My secret is 42.", context)
    assert (context.counts, exchanges.counts) == ({}, {"erased": 1})
    assert await memory.texts() == []


async def test_a_close_waits_no_longer_than_it_is_told(
    memory: Memory, engine: str, slow: Slow
) -> None:
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True)
    await told(exchanges, turn(1), turn(2))
    assert await exchanges.close(timeout=0.01) == 2
    slow.go.set()
    assert await exchanges.close() == 0
    assert exchanges.counts == {"stored": 2}


async def test_a_close_stores_what_a_cancelled_task_has_left(
    make_async_store: Callable[..., AsyncStore], slow: Slow
) -> None:
    facts = facts_in(make_async_store(), embed=slow, engine="plain")
    exchanges = AsyncExchanges(facts, background=True)
    await told(exchanges, turn(1), turn(2))
    (task,) = [one for one in asyncio.all_tasks() if one is exchanges._task]
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    slow.go.set()
    assert await exchanges.close() == 0
    assert exchanges.counts["stored"] == 2


async def test_an_owner_who_was_erased_stays_erased(
    memory: Memory, engine: str, slow: Slow
) -> None:
    memory.facts = facts_in(memory.store, engine=engine, embed=slow)
    exchanges = memory.exchanges(background=True)
    await told(exchanges, turn(1))
    await wait_until_async(lambda: slow.asked)
    await memory.store.erase("ada")
    slow.go.set()
    assert await exchanges.close() == 0
    assert exchanges.counts == {"erased": 1}
    assert await memory.texts() == []


async def test_a_block_stores_what_waits(memory: Memory) -> None:
    async with memory.exchanges(background=True) as exchanges:
        await told(exchanges, *map(turn, range(1, 30)))
    assert exchanges.counts == {"stored": 29}
    assert await memory.texts() == [text(number) for number in range(1, 30)]


@pytest.mark.servers("redis-8.2")
def test_without_a_thread_an_exchange_is_stored_in_line(
    make_store: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError(thread.name)

    facts = inner(facts_in(make_store(), engine="plain"))
    exchanges = Exchanges(facts, background=True)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        exchanges(turn(1))
        assert (exchanges.counts, exchanges.waiting) == ({"stored": 1}, 0)
    exchanges(turn(2))
    assert exchanges.close() == 0
    assert exchanges.counts == {"stored": 2}


@pytest.mark.servers("redis-8.2")
def test_a_process_that_ends_without_a_close_stores_what_waits(server: Server, prefix: str) -> None:
    host, port = server.addresses[0]
    code = f"""
        import threading
        from datetime import timedelta
        from turnstore import Store
        from turnstore.context import Context
        from turnstore.facts import Exchanges, Facts

        at_the_end = threading.Event()

        def embed(texts):
            at_the_end.wait()
            return [[1.0, 2.0] for _ in texts]

        store = Store.from_url('redis://{host}:{port}', name="s", prefix={prefix!r})
        facts = Facts(store, embed=embed, dimensions=2, embedder="e", engine="plain",
                      ttl=timedelta(hours=1))
        context = Context(after=[Exchanges(facts, background=True)])
        for number in range(3):
            with store.conversation("c", owner="ada").turn("Hi", context=context) as turn:
                turn.reply("Ho")
        at_the_end.set()
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    keys = server.raw.keys(f"{prefix}:1:{{*:*}}:facts")
    assert [server.raw.hlen(key) for key in keys] == [3]


@pytest.mark.servers("redis-8.2")
async def test_arguments_of_no_use(memory: Memory) -> None:
    facts: Any = inner(memory.facts)
    kind: Any = Exchanges if isinstance(facts, Facts) else AsyncExchanges
    useless: list[dict[str, Any]] = [{"limit": 0}, {"most": 0}, {"most": 4001}]
    for options in useless:
        with pytest.raises(ValueError, match="Exchanges"):
            kind(facts, **options)
    wrong: list[dict[str, Any]] = [{"background": 1}, {"limit": "1"}, {"speakers": "x"}]
    for options in (*wrong, {"speakers": (1, 2)}):
        with pytest.raises(TypeError):
            kind(facts, **options)
    with pytest.raises(TypeError, match="takes"):
        kind(memory.store)
