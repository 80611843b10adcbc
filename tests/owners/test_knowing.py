"""What is known of an owner: when it is lost, and when several erasures meet."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.owners.helping import NOTE, Owner
from tests.servers.proxy import Cut
from tests.store.talk import texts
from turnstore import ErasedError, FormatError, Store, UnavailableError

if TYPE_CHECKING:
    from tests.conftest import NewStore
    from tests.servers.proxy import Proxy
    from tests.servers.running import Server
    from turnstore import AsyncStore

pytestmark = pytest.mark.one_setup


@pytest.mark.parametrize("how", ["lost", "unreadable"])
async def test_where_nothing_is_known_any_more_what_began_is_refused(
    store: AsyncStore, server: Server, ada: Owner, how: str
) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("before")
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    if how == "lost":
        server.raw.delete(ada.keys.generation)
    else:
        server.raw.set(ada.keys.generation, "hello", px=60_000)
    with pytest.raises(ErasedError, match="Redis has lost what had begun") as caught:
        await turn.__aexit__(None, None, None)
    assert (caught.value.reason, caught.value.reply) == ("lost", "a")
    await chat.append("after")
    with pytest.raises(ErasedError) as caught:
        await turn.save()
    assert caught.value.reason == "lost", "also when others have begun since"
    assert texts(await chat.read()) == ["before", "after"]
    assert (await store.erase("ada")).turns == 2


async def test_what_a_later_version_knows_is_left_alone(
    store: AsyncStore, server: Server, ada: Owner
) -> None:
    chat = store.conversation("c", owner="ada")
    await chat.append("before")
    await chat.set_title("T")
    server.raw.set(ada.keys.generation, "generation 2 whatever", px=60_000)
    doing: list[Callable[[], Awaitable[Any]]] = [
        lambda: chat.append("hi"),
        chat.clear,
        lambda: chat.set_title("new"),
        lambda: chat.fork("d"),
        lambda: chat.turn("q").__aenter__(),
        lambda: chat.turn("q", on_conflict="serialize").__aenter__(),
        lambda: store.erase("ada"),
    ]
    for act in doing:
        with pytest.raises(FormatError, match="stored in format 2"):
            await act()
    assert server.raw.get(ada.keys.generation) == b"generation 2 whatever"
    assert texts(await chat.read()) == ["before"]
    assert await chat.title() == "T"


async def test_a_turn_of_more_than_a_day(store: AsyncStore, ada: Owner) -> None:
    """What was erased two days ago is forgotten, so that nobody could tell."""
    chat = store.conversation("c", owner="ada")
    turn: Any = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    day_us = 86_400_000_000
    ada.change(erased=1)
    turn._began -= day_us - 60_000_000
    await turn.save()
    late: Any = chat.turn("q2")
    await late.__aenter__()
    late.reply("a2")
    late._began -= day_us + 1
    with pytest.raises(ErasedError, match="more than a day ago"):
        await late.save()
    assert texts(await chat.read()) == ["q", "a"]


async def test_a_clock_that_jumps_back(store: AsyncStore, ada: Owner) -> None:
    """The numbers of an owner only grow, so that before and after stay what they were."""
    chat = store.conversation("c", owner="ada")
    await chat.append("before")
    generation = ada.generation
    assert generation
    ahead = generation.number + 3_600_000_000
    ada.change(number=ahead, erased=1)
    turn = chat.turn("q")
    await turn.__aenter__()
    turn.reply("a")
    await chat.append("an hour ago, by the clock")
    await store.erase("ada")
    with pytest.raises(ErasedError):
        await turn.__aexit__(None, None, None)
    await chat.append("after")
    assert texts(await chat.read()) == ["after"]
    assert ada.generation
    assert ada.generation.number > ahead
    assert [info.id for info in await store.conversations("ada")] == ["c"]


# Erasures and each other


async def test_one_whose_step_came_late_begins_anew(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    store = new_store(at=proxy)
    behind.conversation("c", owner="ada").append("before")

    def meanwhile() -> None:
        ada.change(closed_until_ms=1)
        behind.conversation("late", owner="ada").append("came in")

    proxy.next(Cut.NEVER, command="EVALSHA", then=meanwhile)
    receipt = await store.erase("ada")
    assert (receipt.conversations, receipt.turns) == (2, 2)
    assert proxy.count("EVALSHA") == 5
    assert ada.stored == NOTE


async def test_one_that_is_held_up_again_and_again_says_so(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    store = new_store(at=proxy)
    behind.conversation("c", owner="ada").append("before")
    proxy.next(Cut.NEVER, command="EVALSHA", times=99, then=lambda: ada.change(closed_until_ms=1))
    with pytest.raises(UnavailableError, match="was held up") as caught:
        await store.erase("ada")
    assert caught.value.outcome_unknown
    proxy.clear()
    assert (await store.erase("ada")).turns == 1


async def test_one_that_is_overtaken_again_and_again_says_so(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    """Somebody erases without pause; this one has to look at more than the other."""
    ada.load_scripts()
    store = new_store(at=proxy)
    behind.conversation("c", owner="ada").append("before")
    proxy.next(Cut.NEVER, command="EVALSHA", times=99, then=lambda: behind.erase("ada"))
    with pytest.raises(UnavailableError, match="overtaken by another erasure") as caught:
        await store.erase("ada", verify=True)
    assert caught.value.outcome_unknown
    assert proxy.count("EVALSHA") < 99
    proxy.clear()
    assert (await store.erase("ada", verify=True)).verified
    assert ada.stored == NOTE


@pytest.mark.parametrize("step", [0, 1])
async def test_two_at_once(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner, step: int
) -> None:
    """The second begins and ends between two steps of the first; then a turn comes."""
    ada.load_scripts()
    store = new_store(at=proxy)
    for name in "cd":
        behind.conversation(name, owner="ada").append("before")
    others = []

    def meanwhile() -> None:
        others.append(behind.erase("ada"))
        behind.conversation("c", owner="ada").append("after")

    for _ in range(step):
        proxy.next(Cut.NEVER, command="EVALSHA")
    proxy.next(Cut.NEVER, command="EVALSHA", then=meanwhile)
    receipt = await store.erase("ada")
    assert (receipt.conversations, receipt.turns) == (2, 2), "both know of all that went"
    assert [(one.conversations, one.turns) for one in others] == [(2, 2)]
    chat = behind.conversation("c", owner="ada")
    assert texts(chat.read()) == ["after"], "it began after the second one had ended"
    assert ada.agrees


async def test_the_one_that_ends_first_leaves_it_closed_for_the_other(
    new_store: NewStore, proxy: Proxy, behind: Store, ada: Owner
) -> None:
    ada.load_scripts()
    store = new_store(at=proxy)
    chat = behind.conversation("c", owner="ada")
    chat.append("before")
    began: list[Any] = []

    def meanwhile() -> None:
        began.append(ada.generation)
        other = ada.generation
        assert other
        ada.change(number=other.number + 1, erased=other.number + 1)

    proxy.next(Cut.NEVER, command="EVALSHA", then=meanwhile)
    assert (await store.erase("ada")).turns == 1
    assert len(began) == 1
    with pytest.raises(ErasedError, match="just now"):
        chat.append("too early")
    await store.erase("ada")
    chat.append("after")
    assert texts(chat.read()) == ["after"]
