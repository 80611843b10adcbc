"""Which engine is used, what another embedder finds, and how facts are moved to it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.facts.meaning.kit import DIMENSIONS, embed
from tests.facts.store.raw import look, place_of
from tests.servers.facade import inner
from turnstore import CorruptTurnError, EngineMismatchError, ServerError
from turnstore.facts import NewFact, Plain, Search, VectorSet

if TYPE_CHECKING:
    from tests.facts.store.conftest import NewFacts
    from tests.servers.running import Server
    from turnstore.facts import AsyncFacts

pytestmark = pytest.mark.one_setup

TEXTS = [f"Ada knows {number}." for number in range(130)]
CHOSEN = {"search": "search", "vectorset": "vectorset", "plain": "plain"}


async def fill(facts: AsyncFacts) -> None:
    await facts.add_many("ada", [NewFact(text=text) for text in TEXTS])
    first, second, *_ = await facts.list("ada", 2)
    await facts.end("ada", first.id)
    await facts.update("ada", second.id, pinned=True)
    await facts.add("bob", "Bob swims.")


async def finds(facts: AsyncFacts) -> list[str]:
    hits = await facts.search("ada", "Ada knows 7.", top_k=1, min_score=0.9)
    return [hit.fact.text for hit in hits]


def turned(texts: list[str]) -> list[list[float]]:
    """Make vectors of another embedder: those of `embed`, backwards and shorter."""
    return [vector[::-1][:48] for vector in embed(texts)]


OTHER: dict[str, Any] = {"embed": turned, "dimensions": 48, "embedder": "turned:1"}


# Which engine


async def test_auto_takes_what_the_server_has(
    new_facts: NewFacts, server: Server, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    """But for vector sets: servers were seen to crash in them."""
    taken = "search" if engine == "search" else "plain"
    facts = new_facts(engine="auto")
    assert facts.engine == "auto"
    with caplog.at_level(logging.INFO, "turnstore"):
        await facts.add("ada", "Ada knows 7.")
    assert facts.engine == taken
    assert f"the engine {taken}, which this server has" in caplog.text
    assert await finds(facts) == ["Ada knows 7."]
    assert look(server, facts, "ada").spaces[0].startswith(f"{taken}:")


@pytest.mark.parametrize("used", ["plain", "the one of the server"])
async def test_auto_stays_with_what_was_there(new_facts: NewFacts, engine: str, used: str) -> None:
    used = "plain" if used == "plain" else engine
    await new_facts(engine=used).add("ada", "Ada knows 7.")
    facts = new_facts(engine="auto")
    assert await finds(facts) == ["Ada knows 7."]
    assert facts.engine == used


def _has(server: Server, command: str) -> bool:
    try:
        server.raw.execute_command(command, "nothing")
    except Exception as error:  # noqa: BLE001 - any says that it has not
        return "unknown" not in str(error).lower()
    return True


async def test_an_engine_that_the_server_lacks_is_an_error(
    new_facts: NewFacts, server: Server, engine: str
) -> None:
    if engine != "plain" or _has(server, "VCARD"):
        pytest.skip("this server has vector sets")
    with pytest.raises(ServerError):
        await new_facts(engine="vectorset").add("ada", "Ada swims.")
    with pytest.raises(ServerError):
        await new_facts(engine="search").add("bob", "Bob swims.")


@pytest.mark.parametrize("given", ["qdrant", "", "Plain", None, 5, Plain])
async def test_what_is_no_engine_is_refused(new_facts: NewFacts, given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        new_facts(engine=given)


def test_options_of_engines_are_checked() -> None:
    for make in (
        lambda: Plain(dtype="int8"),
        lambda: VectorSet(dtype="float16"),
        lambda: VectorSet(m=0),
        lambda: VectorSet(ef="5"),  # type: ignore[arg-type]  # it is the point
        lambda: Search(algorithm="svs"),
        lambda: Search(dtype="int8"),
        lambda: Search(algorithm="hnsw", ef=0),
        lambda: Search(algorithm="hnsw", m=10**9),
        lambda: Search(algorithm="hnsw", ef_construction=10**9),
        lambda: VectorSet(m=4097),
        lambda: VectorSet(exact=2**70),
        lambda: Search(ef=100),
        lambda: Search(m=32),
        lambda: Search(algorithm="hnsw", block_size=64),
        lambda: Search(timeout=0),
        lambda: Search(timeout="1"),  # type: ignore[arg-type]  # it is the point
    ):
        with pytest.raises((TypeError, ValueError)):
            make()


# What another embedder finds


@pytest.mark.parametrize(
    "options",
    [
        {"embedder": "words:2"},
        {"dimensions": 48, "embed": turned},
        {**OTHER},
    ],
    ids=["name", "dimensions", "both"],
)
async def test_vectors_of_another_embedder_are_never_compared(
    new_facts: NewFacts, server: Server, options: dict[str, Any]
) -> None:
    facts = new_facts()
    await fill(facts)
    before = look(server, facts, "ada")
    other = new_facts(**options)
    for call in (
        lambda: other.search("ada", "Ada"),
        lambda: other.add("ada", "Ada reads."),
        lambda: other.add("eve", "Eve reads."),
        lambda: other.update("ada", "0" * 12, text="x"),
        other.health,
    ):
        with pytest.raises(EngineMismatchError, match="words:1") as caught:
            await call()
        mine = f"{options.get('embedder', 'words:1')} {options.get('dimensions', DIMENSIONS)}"
        assert f"these settings make '{facts.engine} {mine} " in str(caught.value)
    assert look(server, facts, "ada").records == before.records
    assert await finds(facts) == ["Ada knows 7."]
    assert len(await other.list("ada", 1000)) == len(TEXTS) - 1, "what needs no vectors works"


# Moving


async def test_a_dry_run_writes_nothing(new_facts: NewFacts, server: Server, engine: str) -> None:
    """Neither into the register of the store nor elsewhere, and it makes no index."""
    prefix = inner(new_facts())._base.ground.prefix

    def everything() -> tuple[dict[bytes, bytes], list[bytes]]:
        keys = {key: server.raw.dump(key) for key in server.lives(prefix)}
        indexes = server.raw.execute_command("FT._LIST") if engine == "search" else []
        return keys, sorted(one for one in indexes if one.startswith(prefix.encode()))

    at_first = everything()
    others: list[dict[str, Any]] = [{}, {"engine": "auto"}, {"engine": "plain"}]
    for other in others:
        assert (await new_facts(**OTHER, **other).migrate(dry_run=True)).facts == 0
    assert everything() == at_first, "where there are no facts yet"
    old = new_facts()
    await fill(old)
    before = everything()
    for other in others:
        looked = await new_facts(**OTHER, **other).migrate(dry_run=True)
        assert (looked.owners, looked.facts, looked.dry_run) == (2, 131, True)
        assert everything() == before
    both = new_facts(**OTHER, previous=inner(old))
    assert (await both.migrate(dry_run=True, drop=True)).owners == 2
    assert (await old.migrate(dry_run=True)).owners == 0
    assert everything() == before
    assert (await both.migrate()).embedded == 131


async def test_facts_are_moved_to_another_embedder(new_facts: NewFacts, server: Server) -> None:
    old = new_facts()
    await fill(old)
    new = new_facts(**OTHER)
    looked = await new.migrate(dry_run=True)
    assert (looked.owners, looked.facts, looked.embedded, looked.dry_run) == (2, 131, 0, True)
    assert len(look(server, old, "ada").spaces) == 1
    moved = await new.migrate()
    assert (moved.owners, moved.facts, moved.embedded) == (2, 131, 131)
    assert (moved.copied, moved.dropped, moved.dry_run) == (0, 0, False)
    assert await finds(new) == ["Ada knows 7."]
    raw = look(server, new, "ada")
    assert len(raw.spaces) == 2
    with pytest.raises(EngineMismatchError):
        await old.search("ada", "Ada")
    with pytest.raises(EngineMismatchError):
        await old.add("ada", "Ada reads.")
    again = await new.migrate()
    assert (again.owners, again.embedded) == (0, 0)
    await new.add("ada", "Ada reads.")
    first = (await new.list("ada", 1))[0]
    await new.forget("ada", first.id)
    await new.end("ada", (await new.list("ada", 1))[0].id)
    look(server, new, "ada")
    dropped = await new.migrate(drop=True)
    assert dropped.dropped == 131
    raw = look(server, new, "ada")
    assert len(raw.spaces) == 1
    assert len([key for key in raw.keys if b":facts:v" in key]) <= 1
    assert await finds(new) == ["Ada knows 7."]
    health = await new.health()
    assert (health.facts, health.vectors, health.is_well) == (131, 131, True)


async def test_one_can_go_back(new_facts: NewFacts, server: Server) -> None:
    old = new_facts()
    await fill(old)
    new = new_facts(**OTHER)
    await new.migrate()
    await new.add("ada", "Ada knows nothing new.")
    old = new_facts()
    moved = await old.migrate()
    assert (moved.owners, moved.embedded) == (2, 1)
    assert await finds(old) == ["Ada knows 7."]
    look(server, old, "ada")


async def test_vectors_of_the_same_embedder_are_taken_over(
    new_facts: NewFacts, server: Server, engine: str
) -> None:
    """From exact search without a module to this engine, and to shorter numbers."""
    plain = new_facts(engine="plain")
    await fill(plain)

    def refuse(texts: list[str]) -> Any:
        raise AssertionError(texts)

    shorter: dict[str, Any] = {
        "plain": Plain(dtype="float16"),
        "vectorset": VectorSet(dtype="int8"),
        "search": Search(algorithm="flat", dtype="float16"),
    }
    facts: Any = plain
    for target in ([engine] if engine != "plain" else []) + [shorter[engine]]:
        moved = await new_facts(embed=refuse, engine=target).migrate(drop=True)
        assert (moved.copied, moved.embedded) == (131, 0)
        facts = new_facts(engine=target)
        assert await finds(facts) == ["Ada knows 7."]
        raw = look(server, facts, "ada")
        assert len(raw.records) == len(TEXTS)
        assert len(raw.spaces) == 1


async def test_a_migration_that_breaks_off_goes_on_where_it_stopped(
    new_facts: NewFacts, server: Server
) -> None:
    old = new_facts()
    await fill(old)
    asked: list[str] = []

    def tired(texts: list[str]) -> list[list[float]]:
        if asked:
            raise ConnectionError
        asked.extend(texts)
        return turned(texts)

    with pytest.raises(ConnectionError):
        await new_facts(**{**OTHER, "embed": tired}).migrate()
    assert await finds(old) == ["Ada knows 7."]
    await old.add("ada", "Ada reads.")
    look(server, old, "ada")
    moved = await new_facts(**OTHER).migrate()
    assert moved.owners in (1, 2)
    assert moved.embedded <= 132 - len(asked) + 64
    assert await finds(new_facts(**OTHER)) == ["Ada knows 7."]
    look(server, new_facts(**OTHER), "ada")


async def test_what_is_damaged_meanwhile_keeps_the_others_from_being_put(
    new_facts: NewFacts, server: Server
) -> None:
    """Documents that were put have a shorter life than others, until all are renewed."""
    old = new_facts()
    await fill(old)
    names, last = place_of(old, "ada").keys, (await old.list("ada", 1000))[60].id

    def damaging(texts: list[str]) -> list[list[float]]:
        if TEXTS[0] in texts:  # they are read, and not put yet
            server.raw.hset(names.facts, last, b"rubbish")
        return turned(texts)

    with pytest.raises(CorruptTurnError):
        await new_facts(**{**OTHER, "embed": damaging}).migrate()
    _, target = server.raw.hget(names.postings, "#v").decode().split()
    place = place_of(old, "ada")
    ids = [id_.decode() for id_ in server.raw.zrange(names.order, 0, -1)]
    homes = {place.vectors(target), *(place.vector(target, id_) for id_ in ids)} - {names.facts}
    assert [home for home in homes if server.raw.exists(home)] == []


async def test_two_embedders_serve_while_owners_are_moved(
    new_facts: NewFacts, server: Server
) -> None:
    """One process moves; another one, with both embedders, finds and stores all the time."""
    old = new_facts()
    await fill(old)
    both = new_facts(**OTHER, previous=inner(old))
    assert await finds(both) == ["Ada knows 7."]
    await both.add("ada", "Ada reads.")
    await both.add("eve", "Eve reads.")
    assert look(server, both, "eve").spaces != look(server, both, "ada").spaces
    stored: list[str] = []

    def meanwhile(texts: list[str]) -> list[list[float]]:
        if len(stored) < 3:
            text = f"stored meanwhile {len(stored)}"
            stored.append(text)
            behind.add("ada", text)
        return turned(texts)

    from tests.servers.setups import Setup  # noqa: PLC0415 - one test needs it
    from turnstore import Store  # noqa: PLC0415
    from turnstore.facts import Facts  # noqa: PLC0415

    client = server.client(Setup("sync", 2, decode=False))
    ground = inner(both)._base.ground
    store = Store(client, name="test", prefix=ground.prefix)
    options: dict[str, Any] = {"embed": embed, "dimensions": DIMENSIONS, "embedder": "words:1"}
    behind = Facts(store, engine=old.engine, ttl=timedelta(hours=1), **options)
    await new_facts(**{**OTHER, "embed": meanwhile, "previous": inner(old)}).migrate()
    client.close()
    assert len(stored) == 3
    raw = look(server, both, "ada")
    assert {one.fact.text for one in raw.records.values()} >= {*stored, "Ada reads."}
    assert await finds(both) == ["Ada knows 7."]
    hits = await both.search("ada", "stored meanwhile 1", top_k=1, min_score=0.9)
    assert [hit.fact.text for hit in hits] == ["stored meanwhile 1"]
    assert await finds(new_facts(**OTHER)) == ["Ada knows 7."]


async def test_previous_facts_are_of_the_same_store(new_facts: NewFacts, new_store: Any) -> None:
    other = inner(new_facts(new_store(name="other")))
    with pytest.raises(ValueError, match="another store"):
        new_facts(previous=other)
    with pytest.raises(TypeError):
        new_facts(previous="words:1")


async def test_facts_take_a_store_of_their_kind(new_facts: NewFacts) -> None:
    from turnstore.facts import AsyncFacts, Facts  # noqa: PLC0415 - one test needs it

    facts = inner(new_facts())
    options: dict[str, Any] = {"embed": embed, "dimensions": DIMENSIONS, "embedder": "words:1"}
    other = Facts if isinstance(facts, AsyncFacts) else AsyncFacts
    store = facts._run.__self__
    with pytest.raises(TypeError, match="takes a"):
        other(store, **options)
    with pytest.raises(TypeError, match="takes a"):
        type(facts)(object(), **options)


SETTINGS: list[tuple[type[Exception], dict[str, Any]]] = [
    (TypeError, {"embed": None}),
    (TypeError, {"dimensions": "64"}),
    (ValueError, {"dimensions": 0}),
    (ValueError, {"dimensions": 40_000}),
    (TypeError, {"embedder": None}),
    (ValueError, {"embedder": "has blanks"}),
    (ValueError, {"embedder": ""}),
    (ValueError, {"batch": 0}),
    (ValueError, {"deadline": 0}),
    (TypeError, {"ranking": "best"}),
    (TypeError, {"ttl": 5}),
    (TypeError, {"track_use": 1}),
]


@pytest.mark.parametrize("error, options", SETTINGS, ids=[str(one) for _, one in SETTINGS])
async def test_settings_are_checked(
    new_facts: NewFacts, error: type[Exception], options: dict[str, Any]
) -> None:
    with pytest.raises(error):
        new_facts(**options)


async def test_the_place_of_an_owner_is_named_in_errors(facts: AsyncFacts) -> None:
    assert str(place_of(facts, "ada").keys).endswith(":facts")
