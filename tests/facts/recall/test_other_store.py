"""Facts of one store and a conversation of another one are refused before anything is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import facts_in
from tests.servers.facade import inner
from turnstore import Store
from turnstore.context import Context, Retrieval
from turnstore.facts import (
    AsyncExchanges,
    AsyncExtraction,
    AsyncMemoryTools,
    AsyncWorkingMemory,
    Exchanges,
    Extraction,
    MemoryTools,
    Recall,
    WorkingMemory,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = [pytest.mark.one_setup, pytest.mark.servers("redis-7", "redis-8.2", "valkey")]

OTHERS: list[dict[str, Any]] = [
    {"name": "another"},
    {"prefix": "another"},
    {"secret": b"sixteen bytes or more"},
]


def never(*_: object) -> Any:
    pytest.fail("nobody was to ask")


async def anever(*_: object) -> Any:
    never()


def parts(facts: Any, *, is_sync: bool) -> list[dict[str, Any]]:
    """Make everything of facts that a context takes."""
    exchanges = Exchanges if is_sync else AsyncExchanges
    extraction = Extraction if is_sync else AsyncExtraction
    memory = WorkingMemory if is_sync else AsyncWorkingMemory
    return [
        {"sources": [Recall(facts)]},
        {"sources": [memory(facts)]},
        {"after": [exchanges(facts)]},
        {"after": [exchanges(facts, background=True)]},
        {"after": [extraction(facts, never)]},
    ]


@pytest.fixture
def store(new_store: NewStore, proxy: Proxy) -> AsyncStore:
    return new_store(at=proxy)


@pytest.mark.parametrize("other", OTHERS, ids=["name", "prefix", "secret"])
async def test_a_context_refuses_it_before_anything_is_sent(
    store: AsyncStore, new_store: NewStore, proxy: Proxy, engine: str, other: dict[str, Any]
) -> None:
    facts: Any = inner(facts_in(new_store(at=proxy, **other), engine=engine, embed=never))
    chat = store.conversation("c", owner="ada")
    is_sync = isinstance(inner(store), Store)
    for given in parts(facts, is_sync=is_sync):
        context = Context(**given)
        for nobody in (chat, store.conversation("c")):
            with pytest.raises(ValueError, match="another store"):
                nobody.turn("Hello", context=context)
        asked = inner(chat).wrap(never if is_sync else anever, context=context)
        with pytest.raises(ValueError, match="another store"):
            await called(asked, [{"role": "user", "content": "Hello"}])
        assert context.counts == {}
    assert not proxy.count("EVALSHA")
    assert not proxy.count("EVAL")


async def test_parts_of_async_facts_are_refused_on_a_sync_store(
    make_store: Callable[..., Any],
    make_async_store: Callable[..., Any],
    engine: str,
    proxy: Proxy,
) -> None:
    facts: Any = inner(facts_in(make_async_store(at=proxy), engine=engine, embed=never))
    chat = make_store(at=proxy).conversation("c", owner="ada")
    names = ["Recall", "AsyncWorkingMemory", "AsyncExchanges", "AsyncExchanges", "AsyncExtraction"]
    for given, name in zip(parts(facts, is_sync=False), names, strict=True):
        context = Context(**given)
        with pytest.raises(TypeError, match=f"^{name} is async, and this store is not"):
            chat.turn("Hello", context=context)
        with pytest.raises(TypeError, match=f"^{name} is async"):
            chat.wrap(never, context=context)([{"role": "user", "content": "Hello"}])
        assert context.counts == {}
    assert not proxy.count("EVALSHA")
    assert not proxy.count("EVAL")


async def test_a_part_in_the_place_of_another_one_is_refused(
    store: AsyncStore, engine: str
) -> None:
    is_sync = isinstance(inner(store), Store)
    facts: Any = inner(facts_in(store, engine=engine, embed=never))
    for given in parts(facts, is_sync=is_sync):
        ((place, (part,)),) = given.items()
        other = "after" if place == "sources" else "sources"
        swapped: dict[str, Any] = {other: [part]}
        name = type(part).__name__
        with pytest.raises(TypeError, match=rf"^{name} goes into {place}, as in Context\({place}="):
            Context(**swapped)
        if place == "after":
            with pytest.raises(TypeError, match=f"^{name} goes into after"):
                Retrieval(part)


async def called(function: Any, *arguments: Any) -> None:
    answer = function(*arguments)
    if hasattr(answer, "__await__"):
        await answer


async def test_so_do_tools_and_extractions(
    store: AsyncStore, new_store: NewStore, engine: str, server: Server
) -> None:
    is_sync = isinstance(inner(store), Store)
    tools: Any = MemoryTools if is_sync else AsyncMemoryTools
    memory: Any = WorkingMemory if is_sync else AsyncWorkingMemory
    mine: Any = inner(facts_in(store, engine=engine, embed=never))
    other: Any = inner(facts_in(new_store(name="another"), engine=engine, embed=never))
    chat = inner(store.conversation("c", owner="ada"))
    for given in (
        {"conversation": chat},
        {"turn": chat.turn("Hello")},
        {"memory": memory(mine)},
    ):
        with pytest.raises(ValueError, match="another store"):
            tools(other, "ada", **given)
        assert len(tools(mine, "ada", **given)) >= 2
    with pytest.raises(TypeError, match="a working memory is needed"):
        tools(mine, "ada", memory={})
    extraction: Any = (Extraction if is_sync else AsyncExtraction)(other, never)
    with pytest.raises(ValueError, match="another store"):
        await called(extraction.extract, chat)
    assert not list(server.raw.scan_iter(match=f"{chat.key.partition('}')[0]}*"))


async def test_another_store_of_the_same_names_is_the_same(
    store: AsyncStore, new_store: NewStore, engine: str
) -> None:
    facts: Any = inner(facts_in(new_store(max_messages=50), engine=engine))
    for given in parts(facts, is_sync=isinstance(inner(store), Store)):
        store.conversation("c", owner="ada").turn("Hello", context=Context(**given))
